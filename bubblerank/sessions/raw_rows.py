"""Rows that a format gives one by one, as Arrow batches in the session schema's columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bubblerank.sessions.columns import parse_time
from bubblerank.sessions.rejects import Reason, RejectRows
from bubblerank.sessions.validate import COLUMNS

Record = Mapping[str, Any]

RAW_SCHEMA = pa.schema(
    [
        pa.field("query", pa.string()),
        pa.field("session_id", pa.string()),
        pa.field("event_time", pa.int64()),
        pa.field("items", pa.list_(pa.string())),
        pa.field("clicks", pa.list_(pa.bool_())),
        pa.field("step", pa.int64()),
    ]
)
_INT64 = range(-(2**63), 2**63)

_PYTHON_TYPES = {
    "query": {str, bytes, NoneType},
    "session_id": {str, bytes, NoneType},
    "items": {list, NoneType},
    "clicks": {list, NoneType},
    "step": {int, NoneType},
}


class RawChunk(NamedTuple):
    """Some rows of a file, not validated, with the rejects that its reader found by itself.

    `clicks_outside` counts clicks on items that their list does not hold.
    """

    rows: pa.RecordBatch
    positions: npt.NDArray[np.int64]
    rejects: pa.RecordBatch
    clicks_outside: int = 0


def identity(value: Any) -> Any:
    """The value itself."""
    return value


def chunk_of(
    records: Sequence[Any],
    positions: Sequence[int],
    rejects: RejectRows,
    names: Mapping[str, str],
    to_micros: Callable[[Any], Any] = identity,
) -> RawChunk:
    """Rows from dictionaries; `names` maps our columns to theirs, `to_micros` scales integer times.

    Columns are converted whole; only when one refuses are its rows looked at one by one, and those
    of another type rejected.
    """
    try:
        rows = pa.record_batch(_columns(records, names, to_micros), schema=RAW_SCHEMA)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        fitting, kept = [], []
        for record, position in zip(records, positions, strict=True):
            try:
                fitting.append(_conform(record, names, to_micros))
                kept.append(position)
            except _Misfit as misfit:
                rejects.add(position, misfit.reason, str(misfit), as_json(record))
        positions = kept
        columns = [[row[place] for row in fitting] for place in range(len(COLUMNS))]
        rows = _batch(columns)
    return RawChunk(rows, np.array(positions, dtype=np.int64), rejects.to_batch())


def empty_chunk(rejects: RejectRows) -> RawChunk:
    """No rows, only rejects."""
    return RawChunk(_batch([[] for _ in COLUMNS]), np.zeros(0, np.int64), rejects.to_batch())


def _batch(columns: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, RAW_SCHEMA, strict=True)
    ]
    return pa.record_batch(arrays, schema=RAW_SCHEMA)


def _columns(
    records: Sequence[Any], names: Mapping[str, str], to_micros: Callable[[Any], Any]
) -> list[pa.Array]:
    columns = []
    for field in RAW_SCHEMA:
        theirs = names.get(field.name, field.name)
        values = [record.get(theirs) for record in records]
        if field.name == "event_time":
            values = [_time(value, to_micros) for value in values]
        elif not set(map(type, values)) <= _PYTHON_TYPES[field.name]:
            raise TypeError(f"{field.name} of another type")
        columns.append(pa.array(values, field.type))
    return columns


class _Misfit(ValueError):
    """A value of another type than its field's."""

    def __init__(self, message: str, reason: Reason = Reason.WRONG_TYPE) -> None:
        super().__init__(message)
        self.reason = reason


def _time(value: Any, to_micros: Callable[[Any], Any]) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        parsed = parse_time(value)
        if parsed is None:
            raise _Misfit("event_time is not an ISO 8601 time", Reason.BAD_EVENT_TIME)
        return parsed
    if type(value) is not int:
        raise _Misfit(f"event_time is {_name(value)}, not microseconds or an ISO 8601 text")
    micros: int = to_micros(value)
    if micros not in _INT64:
        raise _Misfit("event_time is outside the years 1 to 9999", Reason.BAD_EVENT_TIME)
    return micros


def _conform(
    record: Any, names: Mapping[str, str], to_micros: Callable[[Any], Any]
) -> tuple[Any, ...]:
    if not isinstance(record, Mapping):
        raise _Misfit(f"the record is {_name(record)}, not an object with fields")
    query, session_id, time, items, clicks, step = (
        record.get(names.get(name, name)) for name in COLUMNS
    )
    if not (step is None or (type(step) is int and step in _INT64)):
        raise _Misfit(f"step is {_name(step)}, not a 64-bit integer")
    return (
        _text(query, "query"),
        _text(session_id, "session_id"),
        _time(time, to_micros),
        None if items is None else [_text(item, "an item") for item in _sequence(items, "items")],
        None if clicks is None else [_click(click) for click in _sequence(clicks, "clicks")],
        step,
    )


def _text(value: Any, name: str) -> str | None:
    try:
        if isinstance(value, bytes):
            return value.decode("utf-8")
        if isinstance(value, str):
            value.encode("utf-8")
            return value
    except UnicodeError:
        raise _Misfit(f"{name} is not UTF-8 text") from None
    if value is not None:
        raise _Misfit(f"{name} is {_name(value)}, not a string")
    return None


def _sequence(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise _Misfit(f"{name} is {_name(value)}, not a list")
    return value


def _click(value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if type(value) is int and value in (0, 1):
        return bool(value)
    raise _Misfit(f"a click is {_name(value)}, neither true nor false")


def _name(value: Any) -> str:
    return type(value).__name__


def as_json(record: Any) -> str:
    """A record for a reject's payload."""
    try:
        return json.dumps(record, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        return repr(record)[:8192]
