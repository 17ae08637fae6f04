import math
import shutil
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import schemas
from bubblerank import compare
from bubblerank.compare import compare_runs
from bubblerank.errors import UsageError
from bubblerank.row_hashes import row_hashes
from bubblerank.run_folder import PARTS, RunFolder


def display(query="q", step=1, **changes):
    row = {
        "ranker": "bubblerank",
        "query": query,
        "run": 0,
        "step": step,
        "session_id": None,
        "event_time": None,
        "base": ["a", "b"],
        "displayed": ["b", "a"],
        "clicks": [True, False],
    }
    return row | changes


def metric(step=1, **changes):
    row = dict.fromkeys(schemas.arrow_schema("metric").names, 0) | {
        "ranker": "toprank",
        "click_model": "CM",
        "query": "q",
        "step": step,
        "regret": 0.5,
    }
    return row | changes


def reject(**changes):
    row = {"source": "/x/log.jsonl", "position": 3, "reason": "late", "detail": "d", "payload": "p"}
    return row | changes


def make_run(path, files=1, **parts):
    folder = RunFolder.prepare(path, overwrite=True)
    for part, rows in parts.items():
        folder.part(part).mkdir()
        for i in range(files):
            table = pa.Table.from_pylist(rows[i::files], schema=schemas.arrow_schema(PARTS[part]))
            pq.write_table(table, folder.part(part) / f"{i}.parquet", row_group_size=7)
    folder.write_manifest(
        command="x", settings={}, seed=0, runner="r", engine="e", counters={}, seconds=1.0
    )
    return folder


def test_the_order_of_rows_and_their_split_into_files_do_not_matter(tmp_path):
    rows = [display(f"q{i % 5}", i) for i in range(100)]
    a = make_run(tmp_path / "a", 1, displays=rows)
    b = make_run(tmp_path / "b", 7, displays=rows[::-1])
    (result,) = compare_runs(a, b)
    assert result.same and result.rows_a == result.rows_b == 100 and not result.differences


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("step", 51),
        ("session_id", ""),
        ("displayed", ["a", "b"]),
        ("displayed", ["b", "a", "a"]),
        ("displayed", ["ba"]),
        ("displayed", []),
        ("clicks", [False, True]),
        ("query", "q2 "),
        ("run", 1),
    ],
)
def test_one_changed_value_among_many_rows_is_found_and_named(tmp_path, column, value):
    rows = [display("q2", i) for i in range(50)]
    changed = [*rows[:20], rows[20] | {column: value}, *rows[21:]]
    a = make_run(tmp_path / "a", 2, displays=rows)
    b = make_run(tmp_path / "b", 3, displays=changed)
    (result,) = compare_runs(a, b)
    assert not result.same
    seen = [d.expected for d in result.differences if d.expected]
    assert seen == [rows[20]]
    assert [d.actual for d in result.differences if d.actual] == [changed[20]]
    if column not in compare.KEYS["displays"]:
        (one,) = result.differences
        assert one.key == {"ranker": "bubblerank", "query": "q2", "run": 0, "step": 20}


def test_a_row_moved_between_lists_of_equal_content_is_a_difference(tmp_path):
    a = make_run(
        tmp_path / "a", displays=[display(step=1, base=["x"]), display(step=2, base=["y"])]
    )
    b = make_run(
        tmp_path / "b", displays=[display(step=1, base=["y"]), display(step=2, base=["x"])]
    )
    (result,) = compare_runs(a, b)
    assert [d.key["step"] for d in result.differences] == [1, 2]


def test_how_often_a_row_occurs_counts(tmp_path):
    twice, thrice = [display()] * 2, [display()] * 3
    a, b = make_run(tmp_path / "a", displays=twice), make_run(tmp_path / "b", displays=thrice)
    (result,) = compare_runs(a, b)
    (one,) = result.differences
    assert (one.expected, one.actual) == (None, display())


@pytest.mark.parametrize("other", [math.nextafter(0.5, 1), -0.5, math.nan, math.inf])
def test_floats_are_compared_to_the_bit(tmp_path, other):
    a, b = (
        make_run(tmp_path / n, metrics=[metric(regret=v)]) for n, v in (("a", 0.5), ("b", other))
    )
    assert not compare_runs(a, b)[0].same
    assert compare_runs(b, b)[0].same


def test_minus_zero_is_not_zero(tmp_path):
    a, b = (
        make_run(tmp_path / n, metrics=[metric(regret=v)]) for n, v in (("a", 0.0), ("b", -0.0))
    )
    assert not compare_runs(a, b)[0].same


def test_a_part_that_only_one_run_has_is_a_difference(tmp_path):
    a = make_run(tmp_path / "a", displays=[display()], metrics=[metric()])
    b = make_run(tmp_path / "b", displays=[display()])
    for first, second in ((a, b), (b, a)):
        displays, metrics = compare_runs(first, second)
        assert displays.same and not metrics.same
        assert {metrics.rows_a, metrics.rows_b} == {1, None}
        assert len(metrics.differences) == 1


def test_rejects_are_the_same_wherever_the_log_lies_and_however_they_are_explained(tmp_path):
    a = make_run(tmp_path / "a", rejects=[reject()])
    same = reject(source="s3://b/log.jsonl", detail="other words")
    assert compare_runs(a, make_run(tmp_path / "b", rejects=[same]))[0].same
    for change in ({"source": "/x/l.jsonl"}, {"position": None}, {"reason": "z"}, {"payload": ""}):
        assert not compare_runs(a, make_run(tmp_path / "c", rejects=[reject(**change)]))[0].same


def test_the_first_differences_come_in_the_order_of_their_keys(tmp_path):
    rows = [display(f"q{i:02d}", s) for i in range(30) for s in range(20)]
    a = make_run(tmp_path / "a", displays=rows)
    b = make_run(tmp_path / "b", displays=[row | {"clicks": [False, False]} for row in rows[::-1]])
    (result,) = compare_runs(a, b, limit=25)
    keys = [(d.key["query"], d.key["step"]) for d in result.differences]
    assert keys == [("q00", s) for s in range(20)] + [("q01", s) for s in range(5)]
    assert (result.differing, result.all_found) == (600, True)


def test_when_too_much_differs_only_some_of_it_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "MAX_ROWS", 20)
    a = make_run(tmp_path / "a", displays=[display(step=i) for i in range(500)])
    b = make_run(tmp_path / "b", displays=[display(step=i + 1000) for i in range(500)])
    (result,) = compare_runs(a, b)
    assert not result.all_found and 1 <= result.differing <= 20


def test_what_is_no_complete_run_is_a_usage_error(tmp_path):
    a = make_run(tmp_path / "a", displays=[display()])
    with pytest.raises(UsageError, match="no run folder"):
        compare_runs(a, RunFolder(tmp_path / "b"))
    shutil.copytree(a.path, tmp_path / "c")
    (tmp_path / "c" / "run.json").unlink()
    with pytest.raises(UsageError, match="did not end well"):
        compare_runs(a, RunFolder(tmp_path / "c"))


def test_files_of_another_schema_or_none_are_usage_errors(tmp_path):
    a = make_run(tmp_path / "a", displays=[display()])
    b = make_run(tmp_path / "b", displays=[display()])
    pq.write_table(pa.table({"query": ["q"]}), b.part("displays") / "0.parquet")
    with pytest.raises(UsageError, match="another schema than display"):
        compare_runs(a, b)
    (b.part("displays") / "0.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(UsageError, match="cannot be read"):
        compare_runs(a, b)


ROW = st.fixed_dictionaries(
    {
        "s": st.none() | st.text(max_size=3),
        "i": st.none() | st.integers(-2, 2),
        "f": st.none() | st.sampled_from([0.0, -0.0, 1.5, math.inf]),
        "l": st.none() | st.lists(st.none() | st.sampled_from(["", "a", "b"]), max_size=3),
        "p": st.lists(st.fixed_dictionaries({"u": st.sampled_from("ab"), "w": st.integers(0, 1)})),
    }
)
SCHEMA = pa.schema(
    [
        ("s", pa.string()),
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("l", pa.list_(pa.string())),
        ("p", pa.list_(pa.struct([("u", pa.string()), ("w", pa.int64())]))),
    ]
)


@given(st.lists(ROW, max_size=12))
def test_rows_hash_alike_exactly_when_they_are_equal(rows):
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    hashes = [one.tobytes() for one in row_hashes(batch, SCHEMA.names)]
    texts = [repr(row) for row in batch.to_pylist()]
    assert Counter(Counter(hashes).values()) == Counter(Counter(texts).values())
    assert len(set(zip(hashes, texts, strict=True))) == len(set(texts))


@given(st.lists(ROW, min_size=2, max_size=12), st.data())
def test_slices_and_dictionaries_hash_as_their_plain_rows(rows, data):
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    expected = row_hashes(batch, SCHEMA.names)
    start = data.draw(st.integers(0, len(rows) - 1))
    assert np.array_equal(row_hashes(batch.slice(start), SCHEMA.names), expected[start:])
    at = batch.schema.get_field_index("s")
    encoded = batch.set_column(at, "s", batch.column(at).dictionary_encode())
    assert np.array_equal(row_hashes(encoded, SCHEMA.names), expected)
