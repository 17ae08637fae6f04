"""The Parquet file that one bundle of Arrow blocks becomes: few, large row groups."""

from functools import lru_cache
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io import fileio

import schemas
from schemas.arrow import MOSTLY_DISTINCT

ROW_GROUP_ROWS = 262_144
ROW_GROUP_BYTES = 64 << 20
COMPRESSION = "zstd"
COMPRESSION_LEVEL = 1


def count_rows(block: bytes) -> int:
    """Rows in an Arrow IPC stream, without copying its data."""
    with pa.ipc.open_stream(pa.py_buffer(block)) as reader:
        return sum(batch.num_rows for batch in reader)


class TableSink(fileio.FileSink):
    """Writes elements (Arrow IPC streams of `kind`'s rows) to one Parquet file.

    Small blocks are coalesced into row groups of ROW_GROUP_ROWS rows or ROW_GROUP_BYTES bytes,
    whichever comes first, so at most that much waits in memory. Dictionary-encoded columns are
    handed to Parquet as they are, which saves decoding them; a reader of the file sees the plain
    types of `schemas.arrow_schema(kind)`.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def open(self, fh: BinaryIO) -> None:
        self._fh = fh
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0

    def write(self, record: bytes) -> None:
        table = pa.ipc.open_stream(pa.py_buffer(record)).read_all()
        if self._writer is None:
            self._writer = _open_writer(self._fh, self._kind, table.schema)
        self._waiting.append(_conform(table, self._writer.schema, self._kind))
        self._waiting_rows += table.num_rows
        self._waiting_bytes += len(record)
        if self._waiting_rows >= ROW_GROUP_ROWS or self._waiting_bytes >= ROW_GROUP_BYTES:
            self._write_row_groups()

    def flush(self) -> None:
        """Write what waits and the footer; WriteToFiles calls this once, before closing."""
        if self._writer is None:
            self._writer = _open_writer(self._fh, self._kind, schemas.arrow_schema(self._kind))
        self._write_row_groups()
        self._writer.close()

    def _write_row_groups(self) -> None:
        writer = self._writer
        if writer is None or not self._waiting_rows:
            return
        table = pa.concat_tables(self._waiting).unify_dictionaries()
        writer.write_table(table, row_group_size=min(table.num_rows, 2 * ROW_GROUP_ROWS))
        self._waiting.clear()
        self._waiting_rows = self._waiting_bytes = 0


def _open_writer(fh: BinaryIO, kind: str, incoming: pa.Schema) -> pq.ParquetWriter:
    plain = schemas.arrow_schema(kind)
    return pq.ParquetWriter(
        fh,
        _written_schema(incoming, plain),
        compression=COMPRESSION,
        compression_level=COMPRESSION_LEVEL,
        store_schema=False,
        **_encoding(kind),
    )


def _conform(table: pa.Table, written: pa.Schema, kind: str) -> pa.Table:
    if table.schema.equals(written):
        return table
    if set(table.column_names) != set(written.names):
        raise ValueError(
            f"a block of {kind} rows must have the columns {written.names}, "
            f"got {table.column_names}: build it by schemas.arrow_schema({kind!r})"
        )
    return table.select(written.names).cast(written)


def _written_schema(incoming: pa.Schema, plain: pa.Schema) -> pa.Schema:
    """`plain`, with dictionary-encoded text where `incoming` has it."""
    if set(incoming.names) != set(plain.names):
        return plain
    return pa.schema(
        [field.with_type(_encoded(incoming.field(field.name).type, field.type)) for field in plain]
    )


def _encoded(incoming: pa.DataType, plain: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(incoming):
        return pa.dictionary(pa.int32(), plain)
    if pa.types.is_list(incoming) and pa.types.is_list(plain):
        inner = plain.value_field
        return pa.list_(inner.with_type(_encoded(incoming.value_type, inner.type)))
    if pa.types.is_struct(incoming) and pa.types.is_struct(plain):
        by_name = {incoming.field(i).name: incoming.field(i).type for i in range(len(incoming))}
        return pa.struct(
            [f.with_type(_encoded(by_name.get(f.name, f.type), f.type)) for f in plain]
        )
    return plain


@lru_cache
def _encoding(kind: str) -> dict[str, Any]:
    """Which Parquet columns get a dictionary and which get statistics.

    Text that repeats gets a dictionary; bounds are kept for columns outside lists only, since
    nobody prunes by the lowest item of a list, and they cost a third of the writing time.
    """
    plain = schemas.arrow_schema(kind)
    footer = pa.BufferOutputStream()
    pq.ParquetWriter(footer, plain).close()
    columns = pq.ParquetFile(pa.BufferReader(footer.getvalue())).schema
    paths = [(columns.column(i).path, columns.column(i)) for i in range(len(columns))]
    return {
        "use_dictionary": [
            path
            for path, column in paths
            if column.physical_type in ("BYTE_ARRAY", "INT32") and path not in MOSTLY_DISTINCT
        ],
        "write_statistics": [path for path, _ in paths if "." not in path],
    }
