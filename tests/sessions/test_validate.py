import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblerank.sessions.rejects import PAYLOAD_BYTES, REJECT_SCHEMA, Reason, cut_payload
from bubblerank.sessions.validate import GOOD_SCHEMA, validate
from tests.sessions.strategies import RAW, raw_batch, sessions

YEAR_1, YEAR_10000 = -62_135_596_800 * 10**6, 253_402_300_800 * 10**6

maybe_text = st.none() | st.sampled_from(["", "a", "b", "ü"])
wild_rows = st.fixed_dictionaries(
    {
        "query": maybe_text,
        "session_id": maybe_text,
        "event_time": st.none()
        | st.sampled_from([0, YEAR_1 - 1, YEAR_1, YEAR_10000 - 1, YEAR_10000, -(2**63), 2**63 - 1]),
        "items": st.none() | st.lists(maybe_text, max_size=4),
        "clicks": st.none() | st.lists(st.none() | st.booleans(), max_size=4),
        "step": st.none() | st.sampled_from([-1, 0, 1, 2**63 - 1]),
    }
)


def naive_reason(row):
    """The rules of the contract, a row at a time."""
    items, clicks = row["items"], row["clicks"]
    if not row["query"]:
        return Reason.MISSING_QUERY
    if not row["session_id"]:
        return Reason.MISSING_SESSION_ID
    if row["event_time"] is None or not YEAR_1 <= row["event_time"] < YEAR_10000:
        return Reason.BAD_EVENT_TIME
    if not items:
        return Reason.NO_ITEMS
    if len(items) > 1000:
        return Reason.TOO_MANY_ITEMS
    if not all(items):
        return Reason.EMPTY_ITEM
    if clicks is None or len(clicks) != len(items):
        return Reason.CLICKS_LENGTH
    if None in clicks:
        return Reason.NULL_CLICK
    if row["step"] is not None and row["step"] < 0:
        return Reason.BAD_STEP
    if len(set(items)) < len(items):
        return Reason.REPEATED_ITEM
    return None


def good_rows(batch):
    rows = []
    for row in batch.to_pylist():
        position = row.pop("position")
        row["event_time"] = row.pop("event_time_us")
        row["clicks"] = [bool(click) for click in row["clicks"]]
        row["step"] = None if row["step"] == -1 else row["step"]
        rows.append((position, row))
    return rows


def check(rows, batch, first=1):
    good, rejects = validate(batch, "file", first)
    assert good.schema == GOOD_SCHEMA
    assert rejects.schema == REJECT_SCHEMA
    reasons = [naive_reason(row) for row in rows]
    numbered = list(enumerate(zip(rows, reasons, strict=True), start=first))
    assert good_rows(good) == [(at, row) for at, (row, reason) in numbered if reason is None]
    found = [(r["position"], r["reason"]) for r in rejects.to_pylist()]
    assert found == [(at, reason) for at, (row, reason) in numbered if reason is not None]


@given(st.lists(wild_rows | sessions(), max_size=30), st.integers(1, 10**12))
def test_validation_agrees_with_the_rules_applied_a_row_at_a_time(rows, first):
    check(rows, raw_batch(rows), first)


@given(st.lists(wild_rows | sessions(), min_size=2, max_size=30))
def test_a_slice_of_a_batch_is_validated_like_a_batch(rows):
    check(rows[1:], raw_batch(rows).slice(1))


LIST_TYPES = {
    "large": (pa.large_string(), pa.large_list(pa.large_string()), pa.large_list(pa.bool_())),
    "dictionary": (
        pa.dictionary(pa.int8(), pa.string()),
        pa.list_(pa.dictionary(pa.int16(), pa.large_string())),
        pa.list_(pa.int8()),
    ),
    "view": (pa.string_view(), pa.list_view(pa.string()), pa.list_view(pa.bool_())),
    "binary": (pa.binary(), pa.list_(pa.binary()), pa.list_(pa.uint64())),
}


@pytest.mark.parametrize("kind", LIST_TYPES)
@given(rows=st.lists(wild_rows | sessions(), max_size=20))
def test_types_that_hold_the_same_values_are_accepted(kind, rows):
    text, items, clicks = LIST_TYPES[kind]
    columns = {name: [row[name] for row in rows] for name in RAW.names}
    kinds = {"query": text, "session_id": text, "items": items, "clicks": clicks}
    arrays = []
    for field in RAW:
        values = columns[field.name]
        if pa.types.is_integer(kinds.get("clicks").value_type) and field.name == "clicks":
            values = [v and [c if c is None else int(c) for c in v] for v in values]
        arrays.append(pa.array(values, kinds.get(field.name, field.type)))
    check(rows, pa.record_batch(arrays, names=RAW.names))


def one(**changes):
    row = {
        "query": ["q"],
        "session_id": ["s"],
        "event_time": pa.array([1_000_000]),
        "items": [["a", "b"]],
        "clicks": [[True, False]],
        "step": pa.array([None], pa.int64()),
    }
    row.update(changes)
    return pa.record_batch({name: value for name, value in row.items() if value is not None})


MOMENT = dt.datetime(2020, 2, 3, 4, 5, 6, 789000, tzinfo=dt.UTC)
MICROS = int(MOMENT.timestamp()) * 10**6 + 789000


@pytest.mark.parametrize(
    ("array", "micros"),
    [
        (pa.array([MOMENT], pa.timestamp("us", "UTC")), MICROS),
        (pa.array([MOMENT], pa.timestamp("us", "Europe/Paris")), MICROS),
        (pa.array([MICROS * 1000 + 999], pa.timestamp("ns")), MICROS),
        (pa.array([MICROS // 1000], pa.timestamp("ms")), MICROS),
        (pa.array([MICROS // 10**6], pa.timestamp("s", "UTC")), MICROS - 789000),
        (pa.array([dt.date(1970, 1, 2)]), 86_400 * 10**6),
        (pa.array(["2020-02-03T04:05:06.789Z"]), MICROS),
        (pa.array(["2020-02-03T05:05:06.789+01:00"]), MICROS),
        (pa.array(["2020-02-03 04:05:06.789"]), MICROS),
    ],
)
def test_event_times_of_many_types_are_read_as_microseconds(array, micros):
    good, _ = validate(one(event_time=array), "file")
    assert good.column("event_time_us").to_pylist() == [micros]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([2**62], pa.timestamp("s")),
        pa.array([-(2**60)], pa.timestamp("ms")),
        pa.array(["yesterday"]),
        pa.array([None], pa.timestamp("ns")),
        pa.nulls(1),
    ],
)
def test_times_that_no_calendar_shows_are_rejected(array):
    _, rejects = validate(one(event_time=array), "file")
    assert rejects.column("reason").to_pylist() == [Reason.BAD_EVENT_TIME]


def test_a_bad_text_time_does_not_spoil_its_neighbours():
    batch = pa.concat_batches([one(event_time=pa.array(["2020-01-01T00:00:00Z"]))] * 3)
    times = pa.array(["2020-01-01T00:00:00Z", "?", "2020-01-01T01:00:00+01:00"])
    batch = batch.set_column(2, "event_time", times)
    good, rejects = validate(batch, "file")
    assert good.column("position").to_pylist() == [1, 3]
    assert len(set(good.column("event_time_us").to_pylist())) == 1
    assert rejects.column("position").to_pylist() == [2]


@pytest.mark.parametrize(
    "changes",
    [
        {"query": pa.array([1])},
        {"session_id": pa.array([1.5])},
        {"event_time": pa.array([1.5])},
        {"items": pa.array(["a"])},
        {"items": pa.array([[1, 2]])},
        {"clicks": pa.array([[0.0, 1.0]])},
        {"clicks": pa.array([["true", "false"]])},
        {"clicks": pa.array([True])},
        {"clicks": pa.array([[0, 2]])},
        {"step": pa.array([1.0])},
        {"step": pa.array([2**63], pa.uint64())},
        {"query": pa.array([b"\xff"])},
        {"items": pa.array([[b"\xff", b"a"]])},
    ],
)
def test_a_column_of_another_type_rejects_its_rows(changes):
    good, rejects = validate(one(**changes), "file", 7)
    assert good.num_rows == 0
    assert rejects.column("reason").to_pylist() == [Reason.WRONG_TYPE]
    assert rejects.column("position").to_pylist() == [7]


@pytest.mark.parametrize("name", ["query", "session_id", "event_time", "items", "clicks"])
def test_without_a_required_column_every_row_is_rejected_and_shown(name):
    good, rejects = validate(one(**{name: None}), "file")
    assert good.num_rows == 0
    (row,) = rejects.to_pylist()
    assert row["reason"] == Reason.WRONG_SCHEMA
    assert f"need one column {name};" in row["detail"]
    assert '"step": null' in row["payload"]


def test_a_column_that_stands_twice_is_another_schema():
    batch = one()
    batch = pa.record_batch([*batch.columns, batch.column(0)], names=[*batch.schema.names, "query"])
    assert validate(batch, "file").rejects.column("reason").to_pylist() == [Reason.WRONG_SCHEMA]


def test_the_step_column_may_be_missing():
    assert validate(one(step=None), "file").good.column("step").to_pylist() == [-1]


def test_one_thousand_items_are_accepted_and_one_more_is_not():
    for count, reasons in ((1000, []), (1001, [Reason.TOO_MANY_ITEMS])):
        batch = one(items=[[str(i) for i in range(count)]], clicks=[[False] * count])
        assert validate(batch, "file").rejects.column("reason").to_pylist() == reasons


def test_equal_strings_under_two_codes_are_one_item():
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "a"]))
    batch = one(items=pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), codes))
    assert validate(batch, "file").rejects.column("reason").to_pylist() == [Reason.REPEATED_ITEM]


def test_fixed_size_lists_are_lists():
    items = pa.array([["a", "b"]], pa.list_(pa.string(), 2))
    clicks = pa.array([[True, False]], pa.list_(pa.bool_(), 2))
    assert validate(one(items=items, clicks=clicks), "file").good.num_rows == 1


@given(st.integers(2, 40), st.integers(1, 60), st.integers(0, 2**32))
def test_repeats_are_found_at_every_width(width, rows, seed):
    random = np.random.default_rng(seed)
    items = random.integers(0, 3 * width, size=(rows, width)).astype(str).tolist()
    batch = pa.record_batch(
        {
            "query": ["q"] * rows,
            "session_id": ["s"] * rows,
            "event_time": pa.array([1] * rows),
            "items": items,
            "clicks": [[True] * width] * rows,
        }
    )
    expected = [at for at, shown in enumerate(items, start=1) if len(set(shown)) < width]
    assert validate(batch, "file").rejects.column("position").to_pylist() == expected


@given(st.text(max_size=60), st.integers(0, 80))
def test_a_payload_is_cut_on_a_character_and_as_late_as_possible(text, limit):
    cut = cut_payload(text, limit)
    assert text.startswith(cut)
    assert len(cut.encode()) <= limit
    if cut != text:
        assert len(text[: len(cut) + 1].encode()) > limit


def test_the_payload_of_a_huge_row_is_cut_at_4_kib():
    batch = one(query=[""], items=[["ü" * 100 + str(i) for i in range(999)]])
    (payload,) = validate(batch, "file").rejects.column("payload").to_pylist()
    assert PAYLOAD_BYTES - 3 <= len(payload.encode()) <= PAYLOAD_BYTES
