"""Rows of displays, statistics and metrics as Arrow IPC streams, in columns from the start."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import schemas
from bubblerank.closed_loop import Displays
from bubblerank.rankers.bubble import BubbleState

CHUNK_ROWS = 65_536


def to_ipc(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def display_tables(
    ranker: str,
    query: str,
    run: int,
    items: Sequence[str],
    steps: npt.NDArray[np.int64],
    displays: Displays,
    session_ids: pa.Array | None = None,
    event_times_us: npt.NDArray[np.int64] | None = None,
) -> Iterator[bytes]:
    """Displays as rows of the display schema, at most CHUNK_ROWS in a stream.

    Item strings are written once for each stream, as a dictionary.
    """
    names = pa.array(items, pa.string())
    for first in range(0, len(steps), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        count = len(steps[rows])
        ids = pa.nulls(count, pa.string()) if session_ids is None else session_ids[rows]
        times = None if event_times_us is None else event_times_us[rows]
        schema = display_schema()
        columns = [
            _constant(ranker, count),
            _constant(query, count),
            pa.array(np.full(count, run, dtype=np.int32)),
            pa.array(steps[rows]),
            ids.cast(pa.string()),
            _timestamps(times, count),
            _lists(displays.base[rows], names, schema.field("base").type),
            _lists(displays.displayed[rows], names, schema.field("displayed").type),
            _click_lists(displays.clicked[rows], schema.field("clicks").type),
        ]
        yield to_ipc(pa.Table.from_arrays(columns, schema=schema))


@cache
def display_schema() -> pa.Schema:
    """The display schema with dictionaries for its text: a file's reader sees the plain one."""
    schema = schemas.arrow_schema("display")
    text = pa.dictionary(pa.int32(), pa.string())
    fields = []
    for field in schema:
        if field.name in ("ranker", "query"):
            field = field.with_type(text)
        elif field.name in ("base", "displayed"):
            field = field.with_type(pa.list_(field.type.value_field.with_type(text)))
        fields.append(field)
    return pa.schema(fields)


def _constant(value: str, count: int) -> pa.DictionaryArray:
    indices = pa.array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()))


def _timestamps(times_us: npt.NDArray[np.int64] | None, count: int) -> pa.Array:
    kind = pa.timestamp("us", tz="UTC")
    return pa.nulls(count, kind) if times_us is None else pa.array(times_us).cast(kind)


def _offsets(rows: int, width: int) -> pa.Array:
    return pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(width))


def _lists(
    indexes: npt.NDArray[np.int16], names: pa.StringArray, kind: pa.DataType
) -> pa.ListArray:
    codes = pa.array(indexes.astype(np.int32).reshape(-1))
    values = pa.DictionaryArray.from_arrays(codes, names)
    return pa.ListArray.from_arrays(_offsets(*indexes.shape), values, type=kind)


def _click_lists(clicked: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.ListArray:
    values = pa.array(clicked.reshape(-1).astype(np.bool_))
    return pa.ListArray.from_arrays(_offsets(*clicked.shape), values, type=kind)


def statistic_record(
    ranker: str,
    query: str,
    run: int,
    items: Sequence[str],
    state: BubbleState,
    log_inverse_delta: float,
) -> dict[str, Any]:
    """BubbleRank's state as a record of the statistic schema."""
    uppers, lowers = np.nonzero(np.triu(state.trials, 1))
    pairs = zip(
        uppers.tolist(),
        lowers.tolist(),
        state.wins[uppers, lowers].tolist(),
        state.trials[uppers, lowers].tolist(),
        strict=True,
    )
    return {
        "ranker": ranker,
        "query": query,
        "run": run,
        "step": state.step,
        "horizon": state.horizon,
        "log_inverse_delta": log_inverse_delta,
        "initial": list(items),
        "base": [items[item] for item in state.base],
        "pairs": [
            {"upper": items[i], "lower": items[j], "wins": wins, "trials": trials}
            for i, j, wins, trials in pairs
        ],
    }


def record_table(kind: str, records: Sequence[dict[str, Any]]) -> bytes:
    """Records of one kind as an Arrow IPC stream."""
    return to_ipc(pa.Table.from_pylist(list(records), schema=schemas.arrow_schema(kind)))
