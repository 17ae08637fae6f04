"""Sessions from Parquet files: parts are runs of row groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bubblerank.sessions.parts import WHOLE_FILE, Part
from bubblerank.sessions.raw_rows import RawChunk, empty_chunk
from bubblerank.sessions.rejects import Reason, RejectRows
from bubblerank.sessions.validate import COLUMNS, REQUIRED

PART_ROWS = 1 << 20
BATCH_ROWS = 1 << 16
BATCH_BYTES = 64 << 20
_SAMPLE_ROWS = 4096
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError)


def split_parquet(file: BinaryIO) -> list[Part]:
    """Runs of whole row groups, each of about a million rows; a broken file is one part."""
    try:
        metadata = pq.read_metadata(file)
    except _UNREADABLE:
        return [WHOLE_FILE]
    parts, first_group, first_row, rows = [], 0, 1, 0
    for group in range(metadata.num_row_groups):
        more = metadata.row_group(group).num_rows
        if rows and rows + more > PART_ROWS:
            parts.append(Part(first_group, group, first_row))
            first_group, first_row, rows = group, first_row + rows, 0
        rows += more
    return [*parts, Part(first_group, metadata.num_row_groups, first_row)]


def read_parquet(
    file: BinaryIO, source: str, column_map: Mapping[str, str], part: Part = WHOLE_FILE
) -> Iterator[RawChunk]:
    """Chunks of raw rows of some row groups; a row group that cannot be read is one reject."""
    rejects = RejectRows(source)
    try:
        metadata = pq.read_metadata(file)
        last_group = metadata.num_row_groups if part.stop < 0 else part.stop
        groups = range(part.start, last_group)
        coded = _coded_columns(file, metadata, groups, column_map)
        opened = pq.ParquetFile(file, metadata=metadata, read_dictionary=coded)
        wanted = _wanted(opened.schema_arrow.names, column_map)
    except _UNREADABLE as error:
        file.seek(0)
        cut = file.read(4) == b"PAR1"
        reason = Reason.TRUNCATED_FILE if cut else Reason.NOT_PARSABLE
        rejects.add(None, reason, f"no row can be read: {_first_line(error)}")
        yield empty_chunk(rejects)
        return
    position = part.first_position
    for group in groups:
        described = metadata.row_group(group)
        after = position + described.num_rows
        try:
            batches = opened.iter_batches(
                batch_size=_batch_rows(described),
                row_groups=[group],
                columns=wanted,
                use_threads=False,
            )
            for batch in batches:
                _check_codes(batch)
                positions = np.arange(position, position + batch.num_rows, dtype=np.int64)
                yield RawChunk(_rename(batch, column_map), positions, rejects.to_batch())
                position, rejects = position + batch.num_rows, RejectRows(source)
        except _UNREADABLE as error:
            detail = f"rows {position} to {after - 1} cannot be read: {_first_line(error)}"
            rejects.add(None, Reason.TRUNCATED_FILE, detail)
        position = after
    if len(rejects):
        yield empty_chunk(rejects)


def _wanted(names: list[str], column_map: Mapping[str, str]) -> list[str] | None:
    """Their columns that we need; all of them when one is missing, to show in the rejects."""
    theirs = {ours: column_map.get(ours, ours) for ours in COLUMNS}
    if any(theirs[ours] not in names for ours in REQUIRED):
        return None
    return [name for name in theirs.values() if name in names]


def _rename(batch: pa.RecordBatch, column_map: Mapping[str, str]) -> pa.RecordBatch:
    ours = {column_map.get(name, name): name for name in COLUMNS}
    return batch.rename_columns(
        [ours.get(name, f"({name})" if name in COLUMNS else name) for name in batch.schema.names]
    )


def _batch_rows(group: Any) -> int:
    bytes_per_row: int = max(1, group.total_byte_size // max(1, group.num_rows))
    return max(16, min(BATCH_ROWS, BATCH_BYTES // bytes_per_row))


def _coded_columns(
    file: BinaryIO, metadata: Any, groups: range, column_map: Mapping[str, str]
) -> list[str]:
    """Text columns whose first rows repeat themselves: they are read as dictionary codes.

    Where values hardly repeat, reading them as codes costs more than coding them later. The
    column statistics would tell more, but pyarrow aborts the process on damaged ones.
    """
    query, items = (column_map.get(name, name) for name in ("query", "items"))
    try:
        opened = pq.ParquetFile(file, metadata=metadata)
        paths = {path.split(".")[0]: path for path in _leaves(opened.schema)}
        sample = next(
            opened.iter_batches(
                batch_size=_SAMPLE_ROWS,
                row_groups=list(groups),
                columns=[query, items],
                use_threads=False,
            )
        )
        columns = zip(sample.schema.names, map(_elements, sample.columns), strict=True)
        return [paths[name] for name, values in columns if _repeats(values)]
    except (StopIteration, *_UNREADABLE):
        return []


def _repeats(values: Any) -> bool:
    if not (isinstance(values, pa.Array) and pa.types.is_string(values.type)):
        return False
    return bool(2 * pc.count_distinct(values).as_py() < len(values))


def _elements(column: pa.Array) -> Any:
    return column.flatten() if pa.types.is_nested(column.type) else column


def _check_codes(batch: pa.RecordBatch) -> None:
    """Refuse codes beyond their dictionary, which pyarrow takes unseen from a damaged file."""
    for column in batch.columns:
        values = _elements(column)
        if isinstance(values, pa.DictionaryArray) and len(values) > values.null_count:
            codes = pc.min_max(values.indices).as_py()
            if codes["min"] < 0 or codes["max"] >= len(values.dictionary):
                raise ValueError(f"codes of a dictionary of {len(values.dictionary)} go beyond it")


def _leaves(schema: Any) -> list[str]:
    return [schema.column(number).path for number in range(len(schema))]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
