"""Problems: what is one, and that files give back what was written."""

import dataclasses
import json
import os
import random

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import schemas
from bubblerank.errors import UsageError
from bubblerank.problems import Problem, read_problems, write_problems

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
FORMATS = [".jsonl", ".avro", ".parquet"]
GOOD = {
    "query": "shoes",
    "items": ["a", "b", "c"],
    "click_model": "DCM",
    "attraction": [0.5, 0.25, 0.0],
    "abandonment": [0.9, 0.8],
    "examination": None,
}


@st.composite
def problem_sets(draw):
    keys = draw(
        st.lists(
            st.tuples(TEXT, st.sampled_from(["CM", "DCM", "PBM"])),
            min_size=1,
            max_size=5,
            unique=True,
        )
    )
    problems = []
    for query, click_model in keys:
        items = draw(st.lists(TEXT, min_size=1, max_size=12, unique=True))
        chances = random.Random(draw(st.integers())).random
        by_position = [chances() for _ in range(draw(st.integers(1, len(items))))]
        problems.append(
            Problem(
                query=query,
                items=items,
                click_model=click_model,
                attraction=[draw(st.sampled_from([0, 1, chances()])) for _ in items],
                abandonment=by_position if click_model == "DCM" else None,
                examination=by_position if click_model == "PBM" else None,
            )
        )
    return problems


def changed(**values):
    return {**GOOD, **values}


def refusal(record):
    with pytest.raises(ValueError) as caught:
        Problem.from_record(record)
    return str(caught.value)


@pytest.mark.parametrize("suffix", FORMATS)
@given(problems=problem_sets())
def test_problems_survive_a_file_round_trip(tmp_path_factory, suffix, problems):
    path = tmp_path_factory.mktemp("problems") / f"p{suffix}"
    write_problems(path, problems)
    assert read_problems(path) == problems


@given(problems=problem_sets())
def test_problems_survive_a_record_round_trip(problems):
    assert [Problem.from_record(problem.to_record()) for problem in problems] == problems


def test_written_files_follow_the_schema_as_other_readers_see_them(tmp_path):
    problem = Problem.from_record(GOOD)
    for suffix in FORMATS:
        write_problems(tmp_path / f"p{suffix}", [problem])
    assert json.loads((tmp_path / "p.jsonl").read_text()) == GOOD
    with open(tmp_path / "p.avro", "rb") as file:
        assert list(fastavro.reader(file)) == [GOOD]
    table = pq.read_table(tmp_path / "p.parquet")
    assert table.schema.equals(schemas.arrow_schema("problem"))
    assert table.to_pylist() == [GOOD]


def test_positions_are_those_with_a_parameter_else_all_items():
    assert Problem.from_record(GOOD).positions == 2
    assert Problem("q", ["a", "b"], "CM", [0.1, 0.2]).positions == 2
    assert Problem("q", ["a", "b"], "PBM", [0.1, 0.2], examination=[1.0]).positions == 1


def test_a_problem_takes_arrays_and_cannot_be_changed():
    problem = Problem("q", np.array(["a", "b"]), "CM", np.array([0.1, 1], dtype=np.float32))
    assert [type(value) for value in problem.attraction] == [float, float]
    assert hash(problem) == hash(dataclasses.replace(problem))
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.query = "other"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (changed(query=""), "query must not be empty"),
        (changed(query=7), "query must be a string, got 7"),
        (changed(query="\ud800"), "lone surrogates"),
        (changed(items=[]), "items must hold 1 to 1000 items, got 0"),
        (changed(items=[str(n) for n in range(1001)]), "1 to 1000 items, got 1001"),
        (changed(items=["a", "", "c"]), "items[1] must not be empty"),
        (changed(items=["a", "b", "a"]), "items[2] is 'a', which items[0] is already"),
        (changed(items=["a", None, "c"]), "items[1] must be a string, got None"),
        (changed(items="abc"), "items must be a list, got 'abc'"),
        (changed(click_model="PMB"), "did you mean 'PBM'"),
        (changed(click_model=["CM"]), "unknown click_model"),
        (changed(attraction=[0.5, 0.2]), "attraction has 2 values for 3 items"),
        (changed(attraction=[0.5, 1.5, 0.2]), "attraction[1] must lie in [0, 1], got 1.5"),
        (changed(attraction=[0.5, -0.1, 0.2]), "attraction[1] must lie in [0, 1], got -0.1"),
        (changed(attraction=[0.5, float("nan"), 0.2]), "attraction[1] must lie in [0, 1], got nan"),
        (changed(attraction=[0.5, float("inf"), 0.2]), "attraction[1] must lie in [0, 1], got inf"),
        (changed(attraction=[0.5, 10**400, 0.2]), "attraction[1] must lie in [0, 1], got 1000"),
        (changed(attraction=[0.5, "0.1", 0.2]), "attraction[1] must be a number, got '0.1'"),
        (changed(attraction=[0.5, True, 0.2]), "attraction[1] must be a number, got True"),
        (changed(attraction={"a": 1}), "attraction must be a list"),
        (changed(abandonment=None), "abandonment is missing: DCM needs one value per position"),
        (changed(abandonment=[]), "abandonment must hold at least one"),
        (changed(abandonment=[0.1] * 4), "abandonment has 4 values for 3 items"),
        (changed(examination=[1.0]), "examination must be null for DCM"),
        (changed(click_model="PBM", abandonment=None), "examination is missing: PBM"),
        (changed(click_model="CM"), "abandonment must be null for CM"),
        (changed(atraction=[1.0]), "unknown field 'atraction': did you mean 'attraction'"),
        ({"query": "q", "items": ["a"]}, "missing click_model, attraction"),
        (["shoes"], "a problem is an object with named fields, got ['shoes']"),
    ],
)
def test_what_is_no_problem_is_refused_with_field_value_and_bound(record, message):
    assert message in refusal(record)


def test_a_bad_line_is_told_with_file_line_and_value(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(GOOD) + "\n\n" + json.dumps(changed(query="x", items=[])) + "\n")
    with pytest.raises(UsageError, match=r"p\.jsonl, line 3: items must hold 1 to 1000 items, got"):
        read_problems(path)


@pytest.mark.parametrize("line", ['{"query": ', "[" * 100_000])
def test_a_line_that_is_no_json_is_told(tmp_path, line):
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + line + "\n")
    with pytest.raises(UsageError, match=r"p\.jsonl, line 2: not JSON"):
        read_problems(path)


@pytest.mark.parametrize("suffix", [".avro", ".parquet"])
def test_a_bad_row_is_told_with_file_and_row(tmp_path, suffix):
    path = tmp_path / f"p{suffix}"
    records = [GOOD, changed(query="x", attraction=[2.0, 0.0, 0.0])]
    if suffix == ".avro":
        with open(path, "wb") as file:
            fastavro.writer(file, schemas.load("problem"), records)
    else:
        pq.write_table(pa.Table.from_pylist(records, schemas.arrow_schema("problem")), path)
    with pytest.raises(UsageError, match=rf"p\{suffix}, row 2: attraction\[0\] must lie in"):
        read_problems(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_truncated_or_foreign_file_is_an_error_that_names_it(tmp_path, suffix):
    path = tmp_path / f"p{suffix}"
    write_problems(path, [dataclasses.replace(Problem.from_record(GOOD), query=q) for q in "xyz"])
    whole = path.read_bytes()
    for content in (whole[: len(whole) * 3 // 5], b"\x00\xff\x00 something else", whole[:1]):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=rf"p\{suffix}"):
            read_problems(path)


@pytest.mark.parametrize("suffix", FORMATS)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_but_never_crashes(tmp_path_factory, suffix, data):
    path = tmp_path_factory.mktemp("damaged") / f"p{suffix}"
    write_problems(path, [Problem.from_record(GOOD)])
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        assert all(isinstance(problem, Problem) for problem in read_problems(path))
    except UsageError as error:
        assert str(path) in str(error)


def test_a_second_problem_of_a_query_and_click_model_is_refused(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text((json.dumps(GOOD) + "\n") * 2)
    with pytest.raises(UsageError, match=r"line 2: a second DCM for the query 'shoes'.*line 1"):
        read_problems(path)
    with pytest.raises(UsageError, match="problem 2: a second DCM"):
        write_problems(tmp_path / "q.jsonl", [Problem.from_record(GOOD)] * 2)
    other_model = changed(click_model="PBM", abandonment=None, examination=[1.0])
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps(other_model) + "\n")
    assert len(read_problems(path)) == 2


def test_a_missing_file_an_unknown_extension_and_an_empty_file_are_told(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        read_problems(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match=r"unknown extension '\.csv'.*\.jsonl, \.avro, \.parquet"):
        read_problems(tmp_path / "p.csv")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UsageError, match="holds no problems"):
        read_problems(tmp_path / "empty.jsonl")
    with pytest.raises(UsageError, match="no problems to write"):
        write_problems(tmp_path / "p.jsonl", [])
    with pytest.raises(UsageError, match="does not exist, create it"):
        write_problems(tmp_path / "no" / "p.jsonl", [Problem.from_record(GOOD)])
    with pytest.raises(UsageError, match="cannot be read"):
        (tmp_path / "folder.jsonl").mkdir()
        read_problems(tmp_path / "folder.jsonl")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"p{suffix}"
    write_problems(path, [Problem.from_record(GOOD)])
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_problems(path, [Problem("other", ["a"], "CM", [0.5])])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]
