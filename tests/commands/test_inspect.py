import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import schemas
from bubblerank.run_folder import RunFolder
from commands.main import main

LOG = 4 * math.log(10_000)


def statistic(query="shoes", ranker="bubblerank", run=0, step=500, pairs=()):
    return {
        "ranker": ranker,
        "query": query,
        "run": run,
        "step": step,
        "horizon": 10_000,
        "log_inverse_delta": LOG,
        "initial": ["a", "b", "c"],
        "base": ["b", "a", "c"],
        "pairs": [dict(zip(("upper", "lower", "wins", "trials"), p, strict=True)) for p in pairs],
    }


@pytest.fixture
def folder(tmp_path):
    run = RunFolder.prepare(tmp_path / "run")
    rows = [
        statistic(step=100),
        statistic(pairs=[("a", "b", -200, 240), ("b", "c", 190, 240), ("a", "c", 5, 7)]),
        statistic(run=1),
        statistic(ranker="toprank"),
        statistic("shirts"),
    ]
    run.part("statistics").mkdir()
    for i in range(2):
        table = pa.Table.from_pylist(rows[i::2], schema=schemas.arrow_schema("statistic"))
        pq.write_table(table, run.part("statistics") / f"{i}.parquet")
    run.write_manifest(
        command="x", settings={}, seed=0, runner="r", engine="e", counters={}, seconds=1.0
    )
    return str(run.path)


def test_one_query_is_shown_with_its_lists_and_pairs(folder, capsys):
    words = ["inspect", folder, "--query", "shoes", "--ranker", "bubblerank", "--run", "0"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["sessions", "consumed", "500"] for line in lines)
    assert any(line.split() == ["1", "a", "b", "+1"] for line in lines)
    assert any(line.split() == ["2", "b", "a", "-1"] for line in lines)
    assert any(line.split() == ["3", "c", "c"] for line in lines)
    assert any(line.split()[:4] == ["a", "b", "-200", "240"] for line in lines)


def test_a_pair_is_decided_exactly_when_its_wins_exceed_the_threshold(folder, capsys):
    words = ["inspect", folder, "--query", "shoes", "--ranker", "bubblerank", "--run", "0"]
    assert main([*words, "--format", "json"]) == 0
    (state,) = json.loads(capsys.readouterr().out)
    threshold = 2 * math.sqrt(240 * LOG)
    assert 188 < threshold < 190
    assert [pair["winner"] for pair in state["pairs"]] == ["b", "b", None]
    assert state["pairs"][0]["threshold"] == pytest.approx(threshold, rel=1e-15)


def test_without_a_choice_every_ranker_and_run_is_shown_at_its_last_step(folder, capsys):
    assert main(["inspect", folder, "--query", "shoes", "--format", "json"]) == 0
    states = json.loads(capsys.readouterr().out)
    assert [(s["ranker"], s["run"], s["step"]) for s in states] == [
        ("bubblerank", 0, 500),
        ("bubblerank", 1, 500),
        ("toprank", 0, 500),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--query", "shoe"], "did you mean 'shoes'? It holds 2 queries"),
        (["--query", "zzz"], "for example 'shirts'"),
        (["--query", "shoes", "--run", "7"], "known are bubblerank run 0, bubblerank run 1"),
        (["--query", "shoes", "--ranker", "topr"], "toprank run 0"),
        ([], "--query"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(folder, capsys, words, message):
    assert main(["inspect", folder, *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err


def test_a_run_without_statistics_and_a_folder_without_run_are_usage_errors(tmp_path, capsys):
    empty = RunFolder.prepare(tmp_path / "run")
    assert main(["inspect", str(empty.path), "--query", "q"]) == 2
    empty.write_manifest(
        command="x", settings={}, seed=0, runner="r", engine="e", counters={}, seconds=1.0
    )
    assert main(["inspect", str(empty.path), "--query", "q"]) == 2
    err = capsys.readouterr().err
    assert "did not end well" in err and "no session was ranked" in err
