"""The frame of an Avro object container file: its header, and where its blocks lie.

Blocks are found without decoding them, so that a file can be split, and so that a file that was
cut off is told from one that ends. https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import io
import json
import os
from typing import Any, BinaryIO, NamedTuple

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
MAX_HEADER_BYTES = 16 << 20


class NotAvroError(ValueError):
    """The file is no Avro container, or its header is damaged."""


class AvroHeader(NamedTuple):
    """The writer's schema, the codec, the sync marker, and where the first block begins."""

    schema: Any
    codec: str
    sync: bytes
    blocks_at: int


class AvroBlock(NamedTuple):
    """Where a block begins and ends (after its sync marker), and how many rows it says it has."""

    start: int
    stop: int
    rows: int


def read_header(file: BinaryIO) -> AvroHeader:
    """The header of an open file."""
    file.seek(0)
    if file.read(4) != MAGIC:
        raise NotAvroError("the file does not begin as an Avro container")
    stream = io.BytesIO(file.read(MAX_HEADER_BYTES))
    try:
        metadata = _read_map(stream)
        schema = json.loads(metadata[b"avro.schema"])
        codec = metadata.get(b"avro.codec", b"null").decode("ascii")
    except (EOFError, KeyError, ValueError, RecursionError) as error:
        raise NotAvroError(f"the header of the Avro container is damaged: {error!r}") from None
    sync = stream.read(SYNC_BYTES)
    if len(sync) != SYNC_BYTES:
        raise NotAvroError("the header of the Avro container is cut off")
    return AvroHeader(schema, codec, sync, len(MAGIC) + stream.tell())


def find_blocks(file: BinaryIO, sync: bytes, start: int, stop: int) -> tuple[list[AvroBlock], int]:
    """The whole blocks from byte `start` to `stop` (-1: the end), and where they end.

    Where they end is `stop`, or the end of the file, unless the file is cut off or damaged.
    """
    size = file.seek(0, os.SEEK_END)
    stop = size if stop < 0 else stop
    blocks = []
    while start < stop:
        file.seek(start)
        head = io.BytesIO(file.read(20))
        try:
            rows, length = _read_long(head), _read_long(head)
        except EOFError:
            break
        end = start + head.tell() + length + SYNC_BYTES
        if rows < 0 or length < 0 or end > stop:
            break
        file.seek(end - SYNC_BYTES)
        if file.read(SYNC_BYTES) != sync:
            break
        blocks.append(AvroBlock(start, end, rows))
        start = end
    return blocks, start


def header_bytes(header: AvroHeader, schema: Any) -> bytes:
    """A header like `header` with another schema."""
    entries = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": header.codec.encode()}
    pieces = [MAGIC, _long(len(entries))]
    for key, value in entries.items():
        pieces += [_long(len(key)), key, _long(len(value)), value]
    return b"".join([*pieces, _long(0), header.sync])


class SplicedFile:
    """Reads `head`, then the bytes from `start` to `stop` of `file`."""

    def __init__(self, head: bytes, file: BinaryIO, start: int, stop: int) -> None:
        self._head = io.BytesIO(head)
        self._file = file
        self._left = stop - start
        self._at = 0
        file.seek(start)

    def tell(self) -> int:
        """How many bytes were read."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; all that is left without it."""
        data = self._head.read(size)
        self._at += len(data)
        wanted = self._left if size < 0 else min(self._left, size - len(data))
        if wanted > 0:
            more = self._file.read(wanted)
            self._left -= len(more)
            self._at += len(more)
            data += more
        return data


def _read_map(stream: io.BytesIO) -> dict[bytes, bytes]:
    found = {}
    while count := _read_long(stream):
        if count < 0:
            count = -count
            _read_long(stream)
        for _ in range(count):
            key = _read_bytes(stream)
            found[key] = _read_bytes(stream)
    return found


def _read_bytes(stream: io.BytesIO) -> bytes:
    size = _read_long(stream)
    data = stream.read(size) if size >= 0 else b""
    if len(data) != size:
        raise EOFError(f"{size} bytes announced, {len(data)} found")
    return data


def _read_long(stream: io.BytesIO) -> int:
    value = shift = 0
    while shift < 70:
        byte = stream.read(1)
        if not byte:
            raise EOFError("an integer is cut off")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7
    raise EOFError("an integer of more than 10 bytes")


def _long(value: int) -> bytes:
    number, out = value << 1, bytearray()
    while number > 0x7F:
        out.append(0x80 | (number & 0x7F))
        number >>= 7
    return bytes([*out, number])
