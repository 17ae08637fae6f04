"""Sessions from JSON Lines: one object a line; times are microseconds or ISO 8601 texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from bubblerank.sessions.raw_rows import RawChunk, chunk_of
from bubblerank.sessions.rejects import Reason, RejectRows
from bubblerank.sessions.text_lines import DamagedFileError, Line, text_lines

CHUNK_ROWS = 20_000
CHUNK_BYTES = 16 << 20


def read_jsonl(
    file: BinaryIO, source: str, column_map: Mapping[str, str], *, compressed: bool = False
) -> Iterator[RawChunk]:
    """Chunks of raw rows; their positions are line numbers."""
    rejects = RejectRows(source)
    records: list[Any] = []
    positions: list[int] = []
    size = 0
    try:
        for line in text_lines(file, compressed=compressed):
            size += len(line.data)
            try:
                records.append(_parse(line))
                positions.append(line.number)
            except (ValueError, RecursionError) as error:
                shown = line.data.decode("utf-8", "replace")
                rejects.add(line.number, Reason.NOT_PARSABLE, str(error), shown)
            if len(positions) + len(rejects) >= CHUNK_ROWS or size >= CHUNK_BYTES:
                yield chunk_of(records, positions, rejects, column_map)
                rejects, records, positions, size = RejectRows(source), [], [], 0
    except DamagedFileError as error:
        rejects.add(None, Reason.TRUNCATED_FILE, str(error))
    yield chunk_of(records, positions, rejects, column_map)


def _parse(line: Line) -> dict[str, Any]:
    if line.too_long:
        raise ValueError("the line is longer than 16 MiB")
    record = json.loads(line.data.decode("utf-8"))
    if not isinstance(record, dict):
        raise ValueError(f"the line is a JSON {type(record).__name__}, not an object")
    return record
