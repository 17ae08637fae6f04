"""Sessions from Avro container files: parts are runs of blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, cast

import fastavro

from bubblerank.sessions.avro_container import (
    AvroBlock,
    AvroHeader,
    NotAvroError,
    SplicedFile,
    find_blocks,
    header_bytes,
    read_header,
)
from bubblerank.sessions.parts import WHOLE_FILE, Part
from bubblerank.sessions.raw_rows import RawChunk, as_json, chunk_of, empty_chunk, identity
from bubblerank.sessions.rejects import Reason, RejectRows
from bubblerank.sessions.validate import REQUIRED

CHUNK_ROWS = 20_000
CHUNK_BYTES = 16 << 20
PART_BYTES = 64 << 20
_TO_MICROS: dict[str, Callable[[Any], Any]] = {
    "timestamp-millis": lambda value: value * 1000,
    "local-timestamp-millis": lambda value: value * 1000,
    "timestamp-nanos": lambda value: value // 1000,
    "local-timestamp-nanos": lambda value: value // 1000,
    "date": lambda value: value * 86_400_000_000,
}


def split_avro(file: BinaryIO) -> list[Part]:
    """Runs of whole blocks of about 64 MiB; the last one goes to the end of the file."""
    try:
        header = read_header(file)
    except NotAvroError:
        return [WHOLE_FILE]
    blocks, _ = find_blocks(file, header.sync, header.blocks_at, -1)
    parts, start, first_row, row = [], header.blocks_at, 1, 1
    for block in blocks:
        if block.start - start >= PART_BYTES:
            parts.append(Part(start, block.start, first_row))
            start, first_row = block.start, row
        row += block.rows
    return [*parts, Part(start, -1, first_row)]


def read_avro(
    file: BinaryIO, source: str, column_map: Mapping[str, str], part: Part = WHOLE_FILE
) -> Iterator[RawChunk]:
    """Chunks of raw rows; a block that cannot be decoded is one reject, and so is a cut-off end."""
    rejects = RejectRows(source)
    try:
        header = read_header(file)
    except NotAvroError as error:
        file.seek(0)
        begun = file.read(4) == b"Obj\x01"
        rejects.add(None, Reason.TRUNCATED_FILE if begun else Reason.NOT_PARSABLE, str(error))
        yield empty_chunk(rejects)
        return
    start = part.start or header.blocks_at
    blocks, end = find_blocks(file, header.sync, start, part.stop)
    fields = _fields(header.schema)
    missing = [name for name in REQUIRED if column_map.get(name, name) not in fields]
    problem = f"no field {', '.join(missing)}; the fields are {', '.join(fields) or 'none'}"
    kind = fields.get(column_map.get("event_time", "event_time"))
    to_micros = _TO_MICROS.get(_logical_type(kind), identity)

    records: list[Any] = []
    positions: list[int] = []
    size, position = 0, part.first_position
    for block, found, failure in _decoded(file, header, blocks):
        size += block.stop - block.start
        places = range(position, position + len(found))
        position += block.rows
        if missing:
            for place, record in zip(places, found, strict=True):
                rejects.add(place, Reason.WRONG_SCHEMA, problem, as_json(record))
        else:
            records += found
            positions += places
        if failure:
            detail = f"rows {places.stop} to {position - 1} cannot be decoded: {failure}"
            rejects.add(None, Reason.NOT_PARSABLE, detail)
        if len(records) + len(rejects) >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield chunk_of(records, positions, rejects, column_map, to_micros)
            rejects, records, positions, size = RejectRows(source), [], [], 0
    if part.stop < 0 and end < file.seek(0, os.SEEK_END):
        detail = f"the file is cut off or damaged from byte {end} on"
        rejects.add(None, Reason.TRUNCATED_FILE, detail)
    yield chunk_of(records, positions, rejects, column_map, to_micros)


def _decoded(
    file: BinaryIO, header: AvroHeader, blocks: list[AvroBlock]
) -> Iterator[tuple[AvroBlock, list[Any], str]]:
    """Each block with its rows, and what stopped the decoding before its end, if anything."""
    head = header_bytes(header, _without_logical_types(header.schema))
    waiting = iter(blocks)
    opened: Iterator[Any] | None = None
    for block in waiting:
        records: list[Any] = []
        error = ""
        try:
            if opened is None:
                spliced = SplicedFile(head, file, block.start, blocks[-1].stop)
                opened = iter(fastavro.block_reader(cast(BinaryIO, spliced)))
            for record in next(opened):
                records.append(record)
        except Exception as failure:  # fastavro raises whatever it stumbles over
            opened = None
            error = f"{type(failure).__name__} {failure}"
        if not error and len(records) != block.rows:
            error = f"{block.rows} rows announced, {len(records)} found"
        yield block, records, error


def _fields(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict) or schema.get("type") != "record":
        return {}
    fields = schema.get("fields")
    fields = fields if isinstance(fields, list) else []
    return {str(f.get("name")): f.get("type") for f in fields if isinstance(f, dict)}


def _logical_type(schema: Any) -> str:
    """The logical type of a field, or of the branch of a union that has one."""
    for branch in schema if isinstance(schema, list) else [schema]:
        if isinstance(branch, dict) and "logicalType" in branch:
            return str(branch["logicalType"])
    return ""


def _without_logical_types(schema: Any) -> Any:
    """The same schema for plain values: a time no calendar can show must not stop its block."""
    if isinstance(schema, dict):
        return {
            key: _without_logical_types(value)
            for key, value in schema.items()
            if key != "logicalType"
        }
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    return schema
