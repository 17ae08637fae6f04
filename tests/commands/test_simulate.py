"""`bubblerank simulate` end to end: the same rows whatever the blocks, workers and engine."""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import schemas
from bubblerank import simulate
from bubblerank.compare import compare_runs
from bubblerank.metrics import log_spaced
from bubblerank.problems import Problem, write_problems
from bubblerank.run_folder import RunFolder
from tests.reference_logs import PROBLEMS, books, read_statistics, statistic, trajectory

STEPS, SEED, RUNS = 700, 11, 2
RANKERS = ("bubblerank", "cascade-klucb", "batchrank", "toprank", "baseline")


@pytest.fixture
def simulated(bubblerank, problems_file, tmp_path):
    def call(*flags, out="run", problems=problems_file, code=0):
        words = ["simulate", "--problems", problems, "--out", tmp_path / out]
        ended = bubblerank(*words, *flags)
        assert ended.code == code, ended.err
        assert "Traceback" not in ended.err
        return tmp_path / out

    return call


@pytest.fixture(scope="module")
def small(tmp_path_factory, problems_file):
    """A run of bubblerank and toprank with displays, in one block."""
    from commands.main import main

    out = tmp_path_factory.mktemp("runs") / "small"
    words = ["simulate", "--problems", problems_file, "--out", out, *SMALL, "--displays"]
    assert main([str(word) for word in words]) == 0
    return out


SMALL = ("--steps", STEPS, "--seed", SEED, "--runs", RUNS, "--ranker", "bubblerank,toprank")


def differing(run, other):
    parts = compare_runs(RunFolder(run), RunFolder(other))
    return [part.part for part in parts if not part.same]


@pytest.mark.parametrize(
    "flags",
    [("--block-steps", 13), ("--", "--direct_num_workers=2"), ("--", "--direct_num_workers=1")],
    ids=["blocks", "two workers", "one worker"],
)
def test_blocks_and_workers_change_no_row(simulated, small, flags):
    assert differing(small, simulated(*SMALL, "--displays", *flags)) == []


def test_the_order_of_problems_changes_no_row(simulated, small, tmp_path):
    path = tmp_path / "reversed.parquet"
    write_problems(path, PROBLEMS[::-1])
    assert differing(small, simulated(*SMALL, "--displays", problems=path)) == []


def test_metrics_are_those_without_displays(simulated, small):
    assert differing(small, simulated(*SMALL)) == ["displays"]


def test_another_seed_gives_other_rows(simulated, small):
    run = simulated(*SMALL, "--displays", "--seed", SEED + 1)
    assert differing(small, run) == ["displays", "statistics", "metrics"]


def sorted_rows(table):
    keys = ("ranker", "click_model", "query", "run", "step")
    return table.sort_by([(key, "ascending") for key in keys])


def test_metrics_are_exactly_those_of_the_library_without_beam(simulated):
    """Of all five rankers, to the bit."""
    run = simulated("--steps", 300, "--seed", SEED, "--ranker", ",".join(RANKERS))
    expected = simulate(PROBLEMS, RANKERS, steps=300, seed=SEED)
    found = pq.read_table(run / "metrics", schema=schemas.arrow_schema("metric"))
    assert sorted_rows(found).equals(sorted_rows(expected))
    assert found.num_rows == len(RANKERS) * len(PROBLEMS) * len(log_spaced(300, 50))


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (("--delta", "0.1", "--top", "3"), {"delta": 0.1, "top": 3}),
        (("--horizon", "auto", "--freeze-decided"), {"doubling": True, "freeze_decided": True}),
        (("--horizon", "50", "--positions", "4"), {"horizon": 50, "positions": 4}),
        (("--checkpoints", "3"), {"checkpoints": 3}),
    ],
)
def test_every_flag_means_what_it_means_in_the_library(simulated, flags, settings):
    run = simulated("--steps", 400, *flags)
    expected = simulate(PROBLEMS, steps=400, **settings)
    found = pq.read_table(run / "metrics", schema=schemas.arrow_schema("metric"))
    assert sorted_rows(found).equals(sorted_rows(expected))


def test_displays_and_statistics_are_those_of_the_reference_path(simulated):
    """The readable functions, one step at a time, against blocks and kernels on Beam."""
    steps = 500
    run = simulated("--steps", steps, "--delta", "0.1", "--runs", 2, "--seed", 3, "--displays")
    rows = pq.read_table(run / "displays").to_pylist()
    found = {(row["query"], row["run"], row["step"]): row for row in rows}
    assert len(found) == len(rows) == len(PROBLEMS) * 2 * steps
    for problem in PROBLEMS:
        for repetition in range(2):
            advance = trajectory(problem, steps, seed=3, run=repetition)
            for step, (shown, clicks, base) in enumerate(zip(*advance.displays, strict=True), 1):
                assert found[problem.query, repetition, step] == {
                    "ranker": "bubblerank",
                    "query": problem.query,
                    "run": repetition,
                    "step": step,
                    "session_id": None,
                    "event_time": None,
                    "base": [problem.items[item] for item in base],
                    "displayed": [problem.items[item] for item in shown],
                    "clicks": [bool(click) for click in clicks],
                }
            last = pq.read_table(run / "statistics", filters=[("run", "=", repetition)])
            row = next(r for r in last.to_pylist() if r["query"] == problem.query)
            pairs = {(p["upper"], p["lower"]): (p["wins"], p["trials"]) for p in row["pairs"]}
            found_statistic = row["step"], row["initial"], row["base"], pairs
            assert found_statistic == statistic(problem, advance.progress.state)


def test_displays_replayed_as_a_log_end_in_the_same_statistics(simulated, bubblerank, tmp_path):
    run = simulated("--steps", 600, "--delta", "0.1", "--displays")
    displays = pq.read_table(run / "displays").drop_columns(["session_id", "event_time"])
    steps = displays.column("step")
    log = displays.append_column("session_id", steps.cast(pa.string())).append_column(
        "event_time", steps.cast(pa.timestamp("us", "UTC"))
    )
    pq.write_table(log, tmp_path / "log.parquet")
    words = ["replay", "--log", tmp_path / "log.parquet", "--map", "items=displayed"]
    lists = ["--base-lists", tmp_path / "lists.jsonl", "--delta", "0.1"]
    write_problems(tmp_path / "lists.jsonl", PROBLEMS)
    assert bubblerank(*words, *lists, "--out", tmp_path / "replayed").code == 0
    assert differing(run, tmp_path / "replayed") == ["displays", "metrics"]
    assert read_statistics(tmp_path / "replayed") == read_statistics(run)


def test_the_manifest_tells_everything_about_a_run(small, problems_file):
    manifest = json.loads((small / "run.json").read_text())
    learners = len(PROBLEMS) * 2 * RUNS
    assert books(small) == (learners * STEPS, 0, 0, 0, 0)
    assert manifest["command"] == "simulate"
    assert manifest["seed"] == SEED
    assert (manifest["runner"], manifest["engine"]) == ("DirectRunner", "FnApiRunner")
    assert manifest["settings"]["problems"] == str(problems_file)
    assert manifest["settings"]["rankers"] == ["bubblerank", "toprank"]
    assert manifest["settings"]["horizon"] == STEPS
    assert manifest["settings"]["checkpoints"][-1] == STEPS
    assert manifest["rows"] == {
        "displays": learners * STEPS,
        "statistics": len(PROBLEMS) * RUNS,
        "metrics": learners * len(manifest["settings"]["checkpoints"]),
    }
    for kind, fingerprint in manifest["schemas"].items():
        assert fingerprint == schemas.fingerprint(kind)
    assert not (small / ".writing").exists()


def test_json_holds_the_means_over_queries_and_runs(bubblerank, problems_file, tmp_path):
    words = ["simulate", "--problems", problems_file, "--out", tmp_path / "run", "--steps", 50]
    ended = bubblerank(*words, "--runs", 3, "--format", "json", "--quiet")
    assert ended.err == ""
    table = simulate(PROBLEMS, steps=50, runs=3).to_pylist()
    for line in ended.json["summary"]:
        last = [r for r in table if r["step"] == 50 and r["click_model"] == line["click_model"]]
        assert line["learners"] == len(last) == 3
        assert line["regret"] == pytest.approx(sum(row["regret"] for row in last) / 3)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--ranker", "bubblrank,topr"), "unknown ranker 'bubblrank': did you mean 'bubblerank'?"),
        (("--positions", "7"), "positions must be at most the number of items, got 7"),
        (("--horizon", "auto", "--ranker", "toprank"), "toprank needs a horizon"),
        (("--horizon", "9", "--delta", "0.1"), "contradict each other: give one of them"),
        (("--steps", "0", "--runs", "x", "--tops", "4"), "must be at least 1, got 0"),
        (("--", "--direct_num_workers=-2"), "--direct_num_workers must be 0"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    bubblerank, problems_file, tmp_path, flags, complaint
):
    out = tmp_path / "run"
    words = ["simulate", "--problems", problems_file, "--out", out, "--steps", 10]
    ended = bubblerank(*words, *flags)
    assert ended.code == 2
    assert complaint in ended.err
    assert not out.exists()


def test_a_problem_of_any_text_is_simulated_and_shown(simulated, bubblerank, tmp_path):
    query = "ä\x1b[2J\n" + "x" * 10_000
    write_problems(tmp_path / "p.jsonl", [Problem(query, ("a\x07", "b/c"), "CM", (0.1, 0.9))])
    run = simulated("--steps", 300, problems=tmp_path / "p.jsonl")
    ended = bubblerank("inspect", run, "--query", query)
    assert ended.code == 0
    assert not set(ended.out) & {"\x1b", "\x07"}


def test_a_run_is_overwritten_only_when_asked_for(simulated, bubblerank, problems_file):
    run = simulated("--steps", 10)
    words = ["simulate", "--problems", problems_file, "--out", run, "--steps", 20]
    refused = bubblerank(*words)
    assert refused.code == 2
    assert "is not empty: name another folder or add --overwrite" in refused.err
    assert bubblerank(*words, "--overwrite").code == 0
    assert set(pq.read_table(run / "metrics").column("step").to_pylist()) == set(log_spaced(20, 50))


def test_ctrl_c_ends_with_130_and_leaves_no_half_run(problems_file, tmp_path):
    words = [sys.executable, "-m", "commands.main", "simulate", "--problems", problems_file]
    words += ["--steps", "1e10", "--displays", "--out", tmp_path / "run"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        list(map(str, words)), stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            wait_until(lambda: list((tmp_path / "run").glob(".writing/*/*")), process)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130
    assert err.splitlines()[-1] == "bubblerank: interrupted"
    assert "Traceback" not in err
    assert list((tmp_path / "run").iterdir()) == []


def wait_until(condition, process, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


def test_a_query_with_two_click_models_is_warned_of(bubblerank, tmp_path):
    problem = PROBLEMS[0]
    other = Problem(problem.query, problem.items, "DCM", problem.attraction, (0.5,) * 6)
    write_problems(tmp_path / "p.jsonl", [problem, other])
    words = [
        "simulate",
        "--problems",
        tmp_path / "p.jsonl",
        "--steps",
        5,
        "--out",
        tmp_path / "run",
    ]
    ended = bubblerank(*words)
    assert ended.code == 0
    assert "WARNING: 1 query has problems of several click models, 'shoes' is one" in ended.err
