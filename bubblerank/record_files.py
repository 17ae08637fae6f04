"""Small files of records by extension: JSON Lines, Avro and Parquet, all by the Avro schema.

For files that fit in memory, such as problems; logs go through `bubblerank.sessions`.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import schemas
from bubblerank.atomic_files import replacing
from bubblerank.errors import UsageError

Record = dict[str, Any]
Reader = Callable[[Path], Iterator[tuple[int, Any]]]
Writer = Callable[[Path, str, Iterable[Record]], None]


def read_records(path: str | Path) -> Iterator[tuple[str, Any]]:
    """Yield (where, record): where is `FILE, line 3` or `FILE, row 3`, counted from 1.

    A record is whatever the file holds there; its reader checks it.
    """
    path = Path(path)
    unit, read, _ = _format(path)
    position = 0
    try:
        for position, record in read(path):
            yield f"{path}, {unit} {position}", record
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist: check the path") from error
    except UsageError:
        raise
    except Exception as error:  # damaged files raise whatever their decoder stumbles over
        place = f"after {unit} {position}" if position else "from its beginning"
        message = f"{path} cannot be read {place} as {path.suffix}: {_first_line(error)}"
        raise UsageError(message) from error


def write_records(path: str | Path, kind: str, records: Iterable[Record]) -> None:
    """Write records of the schema `kind` in the format of the extension; whole or not at all."""
    path = Path(path)
    *_, write = _format(path)
    try:
        with replacing(path) as temporary:
            write(temporary, kind, records)
    except FileNotFoundError as error:
        message = f"{path} cannot be written: the folder {path.parent} does not exist, create it"
        raise UsageError(message) from error


def _read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    shown = line.strip()
                    shown = shown if len(shown) <= 60 else shown[:60] + "..."
                    raise UsageError(
                        f"{path}, line {number}: not JSON ({_first_line(error)}): {shown!r}"
                    ) from error
                yield number, record


def _read_avro(path: Path) -> Iterator[tuple[int, Any]]:
    import fastavro

    with open(path, "rb") as file:
        yield from enumerate(fastavro.reader(file), start=1)


def _read_parquet(path: Path) -> Iterator[tuple[int, Any]]:
    import pyarrow.parquet as pq

    number = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=1024):
            for record in batch.to_pylist():
                number += 1
                yield number, record


def _write_lines(path: Path, kind: str, records: Iterable[Record]) -> None:
    names = [field["name"] for field in schemas.load(kind)["fields"]]
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for record in records:
            line = json.dumps({name: record[name] for name in names}, ensure_ascii=False)
            file.write(line + "\n")


def _write_avro(path: Path, kind: str, records: Iterable[Record]) -> None:
    import fastavro

    with open(path, "wb") as file:
        fastavro.writer(file, schemas.load(kind), records, codec="deflate", strict=True)


def _write_parquet(path: Path, kind: str, records: Iterable[Record]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(list(records), schema=schemas.arrow_schema(kind))
    pq.write_table(table, path, compression="zstd")


_FORMATS: dict[str, tuple[str, Reader, Writer]] = {
    ".jsonl": ("line", _read_lines, _write_lines),
    ".avro": ("row", _read_avro, _write_avro),
    ".parquet": ("row", _read_parquet, _write_parquet),
}


def _format(path: Path) -> tuple[str, Reader, Writer]:
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise UsageError(f"{path}: unknown extension {path.suffix!r}, name the file with {known}")
    return _FORMATS[suffix]


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
