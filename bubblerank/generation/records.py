"""Chunks of a synthetic log as session records, with their duplicates and damages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import schemas
from bubblerank.generation.users import Chunk

NO_QUERY, SHORT_CLICKS, REPEATED_ITEM = 1, 2, 3
"""The kinds of damage that a record of the right types can have."""


def to_records(chunk: Chunk, with_steps: bool) -> pa.RecordBatch:
    """The records of a chunk by the session schema; a duplicate follows its session."""
    rows = np.repeat(np.arange(len(chunk.number)), 1 + chunk.duplicate)
    broken = chunk.broken[rows]
    shown = chunk.items.shape[1]
    query_numbers = chunk.query[rows] + 1
    items = chunk.items[rows].astype(np.int64) + 1
    items[:, 1] = np.where(broken == REPEATED_ITEM, items[:, 0], items[:, 1])
    click_lengths = np.where(broken == SHORT_CLICKS, shown - 1, shown)
    clicks = chunk.clicks[rows][np.arange(shown) < click_lengths[:, None]]
    queries = _join("q", query_numbers)
    names = _join("q", np.repeat(query_numbers, shown), "-u", items.reshape(-1))
    steps = pa.array(chunk.step[rows]) if with_steps else pa.nulls(len(rows), pa.int64())
    schema = schemas.arrow_schema("session")
    columns = {
        "query": pc.if_else(pa.array(broken == NO_QUERY), "", queries),
        "session_id": _join("s", chunk.number[rows]),
        "event_time": pa.array(chunk.event_time_us[rows]).cast(schema.field("event_time").type),
        "items": _lists(np.full(len(rows), shown), names),
        "clicks": _lists(click_lengths, pa.array(clicks)),
        "step": steps,
    }
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _join(*parts: str | npt.NDArray[np.int64]) -> pa.Array:
    """Texts from constant and numeric parts."""
    texts = [part if isinstance(part, str) else pa.array(part).cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*texts, "")


def _lists(lengths: npt.NDArray[np.int64], values: pa.Array) -> pa.ListArray:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)
