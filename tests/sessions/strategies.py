"""Sessions for property tests: valid ones, and rows with everything that can be wrong."""

import pyarrow as pa
from hypothesis import strategies as st

from bubblerank.sessions.validate import validate

text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
items = st.sampled_from([*"abcdefg", "éß", "日本", "😀"])


@st.composite
def sessions(draw, queries=("q", "ä", "長い")):
    shown = draw(st.lists(items, min_size=1, max_size=6, unique=True))
    return {
        "query": draw(st.sampled_from(queries)),
        "session_id": draw(text),
        "event_time": draw(st.integers(0, 5) | st.integers(-(10**15), 10**15)),
        "items": shown,
        "clicks": draw(st.lists(st.booleans(), min_size=len(shown), max_size=len(shown))),
        "step": draw(st.none() | st.integers(0, 2**62)),
    }


RAW = pa.schema(
    {
        "query": pa.string(),
        "session_id": pa.string(),
        "event_time": pa.int64(),
        "items": pa.list_(pa.string()),
        "clicks": pa.list_(pa.bool_()),
        "step": pa.int64(),
    }
)


def raw_batch(rows):
    return pa.RecordBatch.from_pylist(rows, schema=RAW)


def good_batch(rows, first_position=1):
    validated = validate(raw_batch(rows), "log.jsonl", first_position)
    assert validated.rejects.num_rows == 0
    return validated.good


def key(row):
    return row["event_time"], row["session_id"].encode("utf-8")
