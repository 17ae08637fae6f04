"""Raw rows as JSON, whatever is wrong with them, for people to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_UNREADABLE = (ValueError, OverflowError, pa.ArrowException)


def payloads(batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> Iterator[str]:
    """Each of `rows` as a JSON object; times as the integers they are stored as."""
    try:
        chosen = batch.take(pa.array(rows))
    except pa.ArrowNotImplementedError:
        chosen = pa.concat_batches([batch.slice(row, 1) for row in rows.tolist()])
    values = [_values(column) for column in chosen.columns]
    for row in zip(*values, strict=True) if values else [()] * len(rows):
        record = dict(zip(batch.schema.names, row, strict=True))
        yield json.dumps(record, ensure_ascii=False, default=str)


def _values(column: pa.Array) -> list[Any]:
    try:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        values: list[Any] = column.to_pylist()
    except _UNREADABLE:
        values = [_readable(value) for value in column]
    return values


def _readable(value: Any) -> Any:
    """A value of Arrow, text that is not UTF-8 with marks where it is not."""
    if not value.is_valid:
        return None
    if isinstance(value, pa.DictionaryScalar):
        return _readable(value.value)
    if isinstance(value, pa.ListScalar):
        return [_readable(element) for element in value.values]
    if isinstance(value, (pa.StringScalar, pa.BinaryScalar)):
        return value.as_buffer().to_pybytes().decode("utf-8", "replace")
    try:
        return value.as_py()
    except _UNREADABLE:
        return f"({value.type} that cannot be shown)"
