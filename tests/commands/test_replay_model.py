"""Replaying generated logs whose truth is known: each mode says what it may say."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from bubblerank import simulate
from bubblerank.model_verdict import judge
from bubblerank.problems import read_problems
from commands.main import main

STEPS = 20_000


def generate(path, *more):
    assert main(["generate", "--out", str(path), *more, "--quiet"]) == 0
    return read_problems(path.with_name(f"{path.stem}.problems.jsonl"))


def replay(log, out, *more):
    return main(["replay", "--log", str(log), "--out", str(out), *more])


@pytest.fixture(scope="module")
def varied(tmp_path_factory):
    path = tmp_path_factory.mktemp("varied") / "log.parquet"
    words = ["--sessions", "200000", "--queries", "30", "--positions", "6", "--broken-rate", ".001"]
    return path, generate(path, *words)


@pytest.fixture(scope="module")
def randomised(tmp_path_factory):
    path = tmp_path_factory.mktemp("randomised") / "log.parquet"
    words = ["--sessions", "60000", "--queries", "12", "--positions", "4", "--randomised"]
    return path, generate(path, *words)


def test_model_says_what_the_truth_says_within_its_intervals(varied, tmp_path, capsys):
    log, truth = varied
    out, fitted = tmp_path / "run", tmp_path / "fitted.jsonl"
    words = ["--feedback", "model", "--click-model", "PBM", "--steps", str(STEPS)]
    more = ["--fitted", str(fitted), "--format", "json", "--seed", "3"]
    assert replay(log, out, *words, *more) == 0
    output = capsys.readouterr()
    told = json.loads(output.out)
    assert told["verdict"]["against"] == "the fitted PBM"
    assert "against the fitted PBM, not against users" in output.err
    assert told["log"]["read"] == 200_000
    assert told["log"]["rejected"] == sum(told["log"]["reasons"].values()) > 0
    chosen = {query["query"]: query for query in told["queries"]}
    assert {problem.query for problem in read_problems(fitted)} == set(chosen)
    true_problems = [problem for problem in truth if problem.query in chosen]
    table = simulate(true_problems, ("bubblerank", "baseline"), STEPS, seed=3)
    evidence = {
        problem.query: (chosen[problem.query]["sessions"], chosen[problem.query]["of_list"])
        for problem in true_problems
    }
    expected = judge(table.to_pylist(), STEPS, evidence)
    for measure in ("gain", "gain_by_traffic", "ndcg_gain"):
        found = told["verdict"][measure]
        assert found["low"] <= getattr(expected, measure).value <= found["high"]
    assert told["verdict"]["violations"] == expected.violations == 0
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["settings"]["feedback"] == "model"
    assert manifest["verdict"] == told["verdict"]
    assert manifest["queries"] == told["queries"]


def test_rare_queries_are_left_out_and_few_give_no_number(varied, tmp_path, capsys):
    log, _ = varied
    words = ["--feedback", "model", "--click-model", "CM", "--steps", "100", "--queries", "5"]
    assert replay(log, tmp_path / "run", *words, "--min-sessions", "15000") == 0
    output = capsys.readouterr()
    assert "not enough evidence (3 queries, at least 10 are needed)" in output.out
    assert "queries without enough evidence   2" in output.out
    assert replay(log, tmp_path / "none", *words, "--min-sessions", "1e9") == 2
    assert "not enough evidence: no query has 1,000,000,000 sessions" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_what_was_simulated_can_be_audited(varied, tmp_path):
    log, _ = varied
    run, fitted = tmp_path / "run", tmp_path / "fitted.jsonl"
    words = ["--feedback", "model", "--steps", "300", "--queries", "3", "--displays", "--quiet"]
    assert replay(log, run, *words, "--fitted", str(fitted)) == 0
    assert main(["audit", str(run), "--problems", str(fitted), "--quiet"]) == 0


def test_match_on_a_randomised_log_agrees_with_the_closed_loop(randomised, tmp_path, capsys):
    """Mean clicks of matched sessions against the expected ones of the ranker's own displays."""
    log, truth = randomised
    out = tmp_path / "run"
    lists = str(log.with_name("log.problems.jsonl"))
    assert replay(log, out, "--feedback", "match", "--base-lists", lists, "--quiet") == 0
    usage = json.loads((out / "run.json").read_text())["usage"]
    consumed = {query["query"]: query for query in usage["by_query"]}
    assert usage["queries"] == usage["queries_with_enough_evidence"] == 12
    clicks = expected = variance = 0.0
    for problem in truth:
        steps = consumed[problem.query]["consumed"]
        assert 0.15 < consumed[problem.query]["acceptance"] < 0.5
        clicks += consumed[problem.query]["clicks"] * steps
        last = simulate([problem], steps=steps, doubling=True, top=4, checkpoints=[steps])
        expected += last.column("reward")[0].as_py()
        chances = np.array(problem.attraction) * np.array(problem.examination)
        variance += steps * float((chances * (1 - chances)).sum())
    # Five standard deviations: a sound estimate leaves them once in a million.
    assert abs(clicks - expected) < 5 * np.sqrt(variance)


def test_usage_equals_a_count_of_displays_and_of_the_log(randomised, tmp_path, capsys):
    log, _ = randomised
    out = tmp_path / "run"
    assert replay(log, out, "--feedback", "match") == 0
    displays = pq.read_table(out / "displays", columns=["query", "clicks"]).to_pylist()
    sessions = pq.read_table(log, columns=["query", "clicks"]).to_pylist()
    output = capsys.readouterr()
    usage = json.loads((out / "run.json").read_text())["usage"]
    for query in usage["by_query"]:
        mine = [row["clicks"] for row in displays if row["query"] == query["query"]]
        logged = [row["clicks"] for row in sessions if row["query"] == query["query"]]
        assert query["consumed"] == len(mine)
        assert query["read"] == len(logged)
        assert query["unused"] == len(logged) - len(mine)
        assert query["clicks"] == pytest.approx(sum(map(sum, mine)) / len(mine))
        assert query["log_clicks"] == pytest.approx(sum(map(sum, logged)) / len(logged))
    assert "Use of the log" in output.out
    assert "by bootstrap over queries" in output.err


def test_logged_on_a_log_that_never_randomises_warns(varied, tmp_path, capsys):
    log, _ = varied
    assert replay(log, tmp_path / "run", "--quiet") == 0
    assert "WARNING: the exchanges in this log are no fair coins" in capsys.readouterr().err


def test_logged_on_a_randomised_log_does_not_warn(randomised, tmp_path, capsys):
    log, _ = randomised
    lists = str(log.with_name("log.problems.jsonl"))
    assert replay(log, tmp_path / "run", "--quiet", "--base-lists", lists) == 0
    assert "WARNING" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--feedback", "match", "--queries", "5"], "--queries belong to --feedback model"),
        (["--prior", "1/2"], "--prior belong to --feedback model"),
        (["--feedback", "model", "--resume", "x"], "--resume belong to --feedback logged"),
        (["--feedback", "model", "--base-lists", "first"], "--base-lists belong to"),
        (["--feedback", "model", "--click-model", "CM", "--plain-em"], "--plain-em belong to EM"),
    ],
)
def test_flags_of_another_mode_are_refused(varied, tmp_path, capsys, words, answer):
    assert replay(varied[0], tmp_path / "run", *words) == 2
    assert answer in capsys.readouterr().err
