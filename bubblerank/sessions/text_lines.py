"""The lines of a text file, plain or gzip, in bounded memory."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MAX_LINE_BYTES = 16 << 20
_SHOWN_BYTES = 8192
_READ_BYTES = 1 << 20
_GZIP = 31


class DamagedFileError(ValueError):
    """The file ends early or cannot be decompressed from some place on."""


class Line(NamedTuple):
    """A line without its end; `too_long` lines hold only their beginning."""

    number: int
    data: bytes
    too_long: bool = False


def text_lines(file: BinaryIO, *, compressed: bool) -> Iterator[Line]:
    """All lines, counted from 1; blank ones are left out.

    Raises DamagedFileError, after the last whole line, when a gzip file is cut off or damaged.
    """
    pieces = _decompressed(file) if compressed else iter(lambda: file.read(_READ_BYTES), b"")
    number, pending, skipping, at_start = 1, b"", False, True
    for piece in pieces:
        if at_start and piece:
            piece, at_start = piece.removeprefix(codecs.BOM_UTF8), False
        lines = (pending + piece).split(b"\n")
        pending = lines.pop()
        for line in lines:
            data = line.removesuffix(b"\r")
            if data.strip():
                yield Line(number, data[:_SHOWN_BYTES] if skipping else data, skipping)
            number, skipping = number + 1, False
        if len(pending) > MAX_LINE_BYTES:
            pending, skipping = pending[:_SHOWN_BYTES], True
    if pending.strip():
        yield Line(number, pending[:_SHOWN_BYTES] if skipping else pending, skipping)


def _decompressed(file: BinaryIO) -> Iterator[bytes]:
    stream = None
    try:
        while data := file.read(_READ_BYTES):
            while data:
                if stream is None:
                    data = data.lstrip(b"\0")
                    if not data:
                        break
                    stream = zlib.decompressobj(_GZIP)
                yield stream.decompress(data, 4 * _READ_BYTES)
                data = stream.unused_data if stream.eof else stream.unconsumed_tail
                if stream.eof:
                    stream = None
    except zlib.error as error:
        raise DamagedFileError(f"the gzip stream is damaged: {error}") from None
    if stream is not None:
        raise DamagedFileError("the gzip stream ends early: the file was cut off")
