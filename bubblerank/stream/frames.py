"""Byte strings with a tag, a version and length-prefixed fields: what waits and what is kept."""

import struct
import zlib
from collections.abc import Sequence

_HEAD = struct.Struct("<4sBI")
_LENGTH = struct.Struct("<I")


def pack(tag: bytes, version: int, fields: Sequence[bytes]) -> bytes:
    """The fields one after another, behind a tag of 4 bytes, a version and a checksum."""
    body = b"".join(_LENGTH.pack(len(field)) + field for field in fields)
    return _HEAD.pack(tag, version, zlib.crc32(body)) + body


def tag_of(data: bytes) -> bytes:
    """The first four bytes, which tell what this is."""
    return data[:4]


def unpack(tag: bytes, version: int, data: bytes) -> list[bytes]:
    """The fields of ``pack``; ValueError for another tag or version, or damaged bytes."""
    name = tag.decode("ascii")
    if len(data) < _HEAD.size:
        raise ValueError(f"{name} is truncated: got {len(data)} bytes")
    found, found_version, checksum = _HEAD.unpack_from(data)
    if found != tag:
        raise ValueError(f"expected {name}, got bytes that start with {found!r}")
    if found_version != version:
        raise ValueError(
            f"{name} has version {found_version}, this release reads version {version}: "
            "read it with the release that wrote it"
        )
    body = memoryview(data)[_HEAD.size :]
    if zlib.crc32(body) != checksum:
        raise ValueError(f"{name} of {len(data)} bytes is truncated or corrupted: wrong checksum")
    fields, at = [], 0
    while at < len(body):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        fields.append(bytes(body[at : at + length]))
        at += length
    return fields
