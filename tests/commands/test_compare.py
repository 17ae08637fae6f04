import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import schemas
from bubblerank.run_folder import RunFolder
from commands.main import main


def make_run(path, regrets, counters=None):
    folder = RunFolder.prepare(path)
    schema = schemas.arrow_schema("metric")
    rows = [
        dict.fromkeys(schema.names, 0)
        | {"ranker": "toprank", "click_model": "CM", "query": "q", "step": i, "regret": regret}
        for i, regret in enumerate(regrets)
    ]
    folder.part("metrics").mkdir()
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, folder.part("metrics") / "a.parquet")
    folder.write_manifest(
        command="x",
        settings={},
        seed=0,
        runner="r",
        engine="e",
        counters=counters or {},
        seconds=1.0,
    )
    return str(path)


def test_equal_runs_exit_with_0(tmp_path, capsys):
    a, b = make_run(tmp_path / "a", [1.0, 2.0]), make_run(tmp_path / "b", [1.0, 2.0])
    assert main(["compare", a, b]) == 0
    out, err = capsys.readouterr()
    assert "metrics" in out and "same" in out
    assert err == "the runs hold the same rows\n"


def test_different_runs_exit_with_1_and_show_what_differs_in_full(tmp_path, capsys):
    a = make_run(tmp_path / "a", [1.0, 0.1 + 0.2, 3.0])
    b = make_run(tmp_path / "b", [1.0, 0.3])
    assert main(["compare", a, b]) == 1
    out, err = capsys.readouterr()
    assert "2 differences" in out
    assert "0.30000000000000004" in out
    assert "ranker=toprank click_model=CM query=q run=0 step=1" in out
    assert "(only in A)" in out
    assert err == "the runs hold different rows\n"


def test_the_limit_cuts_what_is_shown_and_not_the_verdict(tmp_path, capsys):
    a, b = make_run(tmp_path / "a", [1.0] * 9), make_run(tmp_path / "b", [2.0] * 9)
    assert main(["compare", a, b, "--limit", "2", "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert "metrics: the first 2 of 9 differences" in out
    assert err == ""


def test_json_holds_the_verdict_and_the_rows(tmp_path, capsys):
    a, b = make_run(tmp_path / "a", [1.0]), make_run(tmp_path / "b", [2.0])
    assert main(["compare", a, b, "--format", "json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["same"] is False
    (part,) = result["parts"]
    (difference,) = part["differences"]
    assert (difference["expected"]["regret"], difference["actual"]["regret"]) == (1.0, 2.0)


def test_books_that_differ_are_remarked_on(tmp_path, capsys):
    a = make_run(tmp_path / "a", [1.0], {"read": 5, "ranked": 5})
    b = make_run(tmp_path / "b", [1.0], {"read": 6, "ranked": 5, "duplicate": 1})
    assert main(["compare", a, b]) == 0
    err = capsys.readouterr().err
    assert "run.json counts read 5 in A, 6 in B" in err
    assert "duplicate 0 in A, 1 in B" in err


@pytest.mark.parametrize("words", [["{a}", "{a}-none"], ["{a}"], ["{a}", "{a}", "--limit", "-1"]])
def test_what_cannot_be_compared_exits_with_2(tmp_path, capsys, words):
    a = make_run(tmp_path / "a", [1.0])
    assert main(["compare", *[word.format(a=a) for word in words]]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("bubblerank: ")
