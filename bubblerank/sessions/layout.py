"""The bytes of a block, version 1.

A header, then columns back to back, the widest first so that each is aligned, then a CRC-32:

    int64  event_time_us[n]  position[n]  step[n] if any is known
    int32  list_id[n]  session_id_length[n]  source_id[n] if there are several sources
    int32  list_length[lists] unless all are equal  list_items[...]  item_length[items]
    int32  source_length[sources]
    uint8  clicks[...]  session_ids  items  query  sources     (texts are UTF-8)
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

MAGIC = b"BRSB"
VERSION = 1
HAS_STEPS = 1
UNIFORM = 2

_HEADER = struct.Struct("<4sHHIIIIIIQQQQ")
_CHECKSUM = struct.Struct("<I")


class Header(NamedTuple):
    """How much of everything a block holds."""

    flags: int
    sessions: int
    lists: int
    items: int
    sources: int
    query_bytes: int
    source_bytes: int
    list_items: int
    clicks: int
    session_id_bytes: int
    item_bytes: int

    def body_bytes(self) -> int:
        """The bytes between header and checksum."""
        rows = 16 + 8 * bool(self.flags & HAS_STEPS) + 8 + 4 * (self.sources > 1)
        words = self.list_items + self.items + self.sources
        words += 0 if self.flags & UNIFORM else self.lists
        texts = self.session_id_bytes + self.item_bytes + self.query_bytes + self.source_bytes
        return rows * self.sessions + 4 * words + self.clicks + texts


HEADER_BYTES = _HEADER.size


def pack(header: Header, parts: list[bytes | memoryview]) -> bytes:
    """A block from its header and its columns in the order above."""
    body = b"".join([_HEADER.pack(MAGIC, VERSION, *header), *parts])
    return body + _CHECKSUM.pack(zlib.crc32(body))


def unpack(data: bytes) -> Header:
    """Check a block's frame and read its header.

    Raises ValueError for bytes that are no block, of another version, cut short or damaged.
    """
    if len(data) < HEADER_BYTES + _CHECKSUM.size:
        raise ValueError(f"a block has at least {HEADER_BYTES + 4} bytes, got {len(data)}: cut off")
    magic, version, *fields = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise ValueError(f"a block begins with {MAGIC!r}, got {magic!r}: not a block of sessions")
    if version != VERSION:
        raise ValueError(
            f"block version must be {VERSION}, got {version}: read it by the release that wrote it"
        )
    header = Header(*fields)
    expected = HEADER_BYTES + header.body_bytes() + _CHECKSUM.size
    if len(data) != expected:
        raise ValueError(f"a block of {expected} bytes has {len(data)}: cut off or damaged")
    (checksum,) = _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)
    if zlib.crc32(memoryview(data)[: -_CHECKSUM.size]) != checksum:
        raise ValueError(f"a block of {len(data)} bytes does not match its checksum: damaged")
    return header
