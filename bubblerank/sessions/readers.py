"""Which reader a log needs, and its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import BinaryIO, NamedTuple

from bubblerank.errors import UsageError, unknown_name
from bubblerank.sessions.parts import WHOLE_FILE, Part
from bubblerank.sessions.raw_rows import RawChunk
from bubblerank.sessions.validate import COLUMNS


class LogFormat(StrEnum):
    """The formats that sessions are read from."""

    AVRO = "avro"
    PARQUET = "parquet"
    JSONL = "jsonl"
    YANDEX = "yandex"


_EXTENSIONS = {
    ".avro": LogFormat.AVRO,
    ".parquet": LogFormat.PARQUET,
    ".jsonl": LogFormat.JSONL,
    ".tsv": LogFormat.YANDEX,
}
_TEXT = (LogFormat.JSONL, LogFormat.YANDEX)


class FileFormat(NamedTuple):
    """How a file is to be read."""

    log_format: LogFormat
    compressed: bool


def format_of(path: str, log_format: str | None = None) -> FileFormat:
    """The format named, or else the one of the path's extension; `.gz` goes with text formats."""
    plain = path.removesuffix(".gz")
    compressed = plain != path
    if log_format is None:
        found = next((f for end, f in _EXTENSIONS.items() if plain.lower().endswith(end)), None)
        if found is None:
            known = ", ".join(_EXTENSIONS)
            raise UsageError(
                f"the format of {path!r} does not show in its name (known: {known}, and .gz of "
                f"the text formats): name it with --log-format {'|'.join(LogFormat)}"
            )
    elif log_format in list(LogFormat):
        found = LogFormat(log_format)
    else:
        raise UsageError(
            unknown_name("log format", log_format, [str(known) for known in LogFormat])
        )
    if compressed and found not in _TEXT:
        raise UsageError(f"{path!r}: {found} compresses by itself, .gz is read for text formats")
    return FileFormat(found, compressed)


def check_column_map(column_map: Mapping[str, str] | None) -> dict[str, str]:
    """`column_map` (our name: their name) as given, or a UsageError that names all wrong names."""
    checked = dict(column_map or {})
    complaints = [unknown_name("column", name, COLUMNS) for name in checked if name not in COLUMNS]
    theirs = [checked.get(name, name) for name in COLUMNS]
    twice = sorted({name for name in theirs if theirs.count(name) > 1})
    if twice:
        complaints.append(f"column map: {', '.join(twice)} would be read as two columns")
    if complaints:
        raise UsageError("\n".join(complaints))
    return checked


def split_file(file: BinaryIO, file_format: FileFormat) -> list[Part]:
    """Parts of an open file that can be read apart; text is one part."""
    if file_format.log_format is LogFormat.PARQUET:
        from bubblerank.sessions.parquet import split_parquet

        return split_parquet(file)
    if file_format.log_format is LogFormat.AVRO:
        from bubblerank.sessions.avro import split_avro

        return split_avro(file)
    return [WHOLE_FILE]


def read_part(
    file: BinaryIO,
    source: str,
    file_format: FileFormat,
    column_map: Mapping[str, str] | None = None,
    part: Part = WHOLE_FILE,
) -> Iterator[RawChunk]:
    """Chunks of raw rows of one part of an open file, in bounded memory.

    A broken file never raises: what cannot be read is among the rejects.
    """
    names = column_map or {}
    match file_format.log_format:
        case LogFormat.PARQUET:
            from bubblerank.sessions.parquet import read_parquet

            return read_parquet(file, source, names, part)
        case LogFormat.AVRO:
            from bubblerank.sessions.avro import read_avro

            return read_avro(file, source, names, part)
        case LogFormat.JSONL:
            from bubblerank.sessions.jsonl import read_jsonl

            return read_jsonl(file, source, names, compressed=file_format.compressed)
        case LogFormat.YANDEX:
            from bubblerank.sessions.yandex import read_yandex

            return read_yandex(file, source, compressed=file_format.compressed)
