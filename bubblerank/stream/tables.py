"""Records as Arrow IPC streams."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import schemas


def to_ipc(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def record_table(kind: str, records: Sequence[dict[str, Any]]) -> bytes:
    """Records of one kind as an Arrow IPC stream."""
    return to_ipc(pa.Table.from_pylist(list(records), schema=schemas.arrow_schema(kind)))
