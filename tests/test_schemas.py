"""The schemas: what they hold, and that records survive Avro and Parquet."""

import io
import json
import re
from datetime import UTC, datetime

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas

FIELDS = {
    "session": "query session_id event_time items clicks step",
    "problem": "query items click_model attraction abandonment examination",
    "display": "ranker query run step session_id event_time base displayed clicks",
    "statistic": "ranker query run step horizon log_inverse_delta initial base pairs",
    "metric": "ranker click_model query run step regret reward clicks violations ndcg mean_ndcg "
    "inversions",
    "reject": "source position reason detail payload",
    "finding": "check severity ranker query run step expected actual",
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "string": TEXT,
}


def values(avro):
    """Values of an Avro type, made from the Avro specification and not from our loader."""
    if isinstance(avro, str):
        return VALUES[avro]
    if isinstance(avro, list):
        return st.one_of(st.none(), *[values(branch) for branch in avro if branch != "null"])
    if avro.get("logicalType") == "timestamp-micros":
        span = (datetime(1900, 1, 1), datetime(2200, 1, 1))
        return st.datetimes(*span, timezones=st.just(UTC))
    if avro["type"] == "array":
        return st.lists(values(avro["items"]), max_size=5)
    return st.fixed_dictionaries({f["name"]: values(f["type"]) for f in avro["fields"]})


def every_field(record):
    for field in record["fields"]:
        yield field
        nested = field["type"].get("items") if isinstance(field["type"], dict) else None
        if isinstance(nested, dict):
            yield from every_field(nested)


def test_there_is_one_schema_for_each_kind_of_record():
    assert set(schemas.names()) == set(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_fields_have_the_documented_names_in_order(name):
    assert [field["name"] for field in schemas.load(name)["fields"]] == FIELDS[name].split()
    assert schemas.arrow_schema(name).names == FIELDS[name].split()


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_documented(name):
    schema = schemas.load(name)
    assert schema["doc"].endswith(".")
    assert [f["name"] for f in every_field(schema) if not f.get("doc", "").endswith(".")] == []


@pytest.mark.parametrize("name", FIELDS)
def test_a_schema_is_valid_avro(name):
    assert json.loads(schemas.text(name)) == schemas.load(name)
    fastavro.parse_schema(schemas.load(name))


def test_arrow_types_follow_the_avro_types():
    session = schemas.arrow_schema("session")
    assert session.field("event_time") == pa.field(
        "event_time", pa.timestamp("us", tz="UTC"), nullable=False
    )
    assert session.field("step") == pa.field("step", pa.int64(), nullable=True)
    assert session.field("items").type == pa.list_(pa.field("element", pa.string(), nullable=False))
    problem = schemas.arrow_schema("problem")
    doubles = pa.list_(pa.field("element", pa.float64(), nullable=False))
    assert problem.field("abandonment") == pa.field("abandonment", doubles, nullable=True)
    statistic = schemas.arrow_schema("statistic")
    assert statistic.field("run").type == pa.int32()
    assert statistic.field("horizon") == pa.field("horizon", pa.int64(), nullable=False)
    pair = statistic.field("pairs").type.value_type
    assert [(field.name, field.type, field.nullable) for field in pair] == [
        ("upper", pa.string(), False),
        ("lower", pa.string(), False),
        ("wins", pa.int64(), False),
        ("trials", pa.int64(), False),
    ]


@pytest.mark.parametrize("name", FIELDS)
@settings(max_examples=25)
@given(data=st.data())
def test_records_survive_avro(name, data):
    records = data.draw(st.lists(values(schemas.load(name)), max_size=4))
    file = io.BytesIO()
    fastavro.writer(file, schemas.load(name), records)
    file.seek(0)
    assert list(fastavro.reader(file)) == records


@pytest.mark.parametrize("name", FIELDS)
@settings(max_examples=25)
@given(data=st.data())
def test_records_survive_parquet(name, data):
    records = data.draw(st.lists(values(schemas.load(name)), max_size=4))
    schema = schemas.arrow_schema(name)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records, schema=schema), file)
    file.seek(0)
    table = pq.read_table(file)
    assert table.schema.equals(schema)
    assert table.to_pylist() == records


def test_fingerprints_are_sha256_differ():
    prints = {name: schemas.fingerprint(name) for name in FIELDS}
    assert len(set(prints.values())) == len(FIELDS)
    assert all(re.fullmatch("[0-9a-f]{64}", value) for value in prints.values())


def test_a_fingerprint_is_that_of_the_canonical_form():
    """The canonical form of the rejects, written by hand from the Avro specification."""
    import hashlib

    canonical = (
        '{"name":"bubblerank.Reject","type":"record","fields":['
        '{"name":"source","type":"string"},{"name":"position","type":["null","long"]},'
        '{"name":"reason","type":"string"},{"name":"detail","type":"string"},'
        '{"name":"payload","type":"string"}]}'
    )
    assert schemas.fingerprint("reject") == hashlib.sha256(canonical.encode()).hexdigest()


def test_a_loaded_schema_is_the_callers_own():
    schemas.load("session")["fields"].clear()
    assert schemas.load("session")["fields"]


@pytest.mark.parametrize("ask", [schemas.text, schemas.load, schemas.arrow_schema])
def test_an_unknown_name_is_answered_with_the_nearest_and_the_known_ones(ask):
    with pytest.raises(ValueError, match=r"did you mean 'session'\? Known: display, finding,"):
        ask("sesion")


@pytest.mark.parametrize("avro", ["float128", ["null", "int", "long"], {"type": "fixed"}])
def test_an_avro_type_without_an_arrow_type_is_refused(avro):
    from schemas.arrow import schema_of

    with pytest.raises(ValueError, match=r"union must be|no Arrow type"):
        schema_of({"fields": [{"name": "x", "type": avro}]})
