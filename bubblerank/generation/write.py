"""A synthetic log into a file, chunk by chunk: Parquet, Avro, JSON Lines or Yandex."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import schemas
from bubblerank.atomic_files import replacing
from bubblerank.errors import UsageError
from bubblerank.generation.records import to_records
from bubblerank.generation.settings import LogSettings
from bubblerank.generation.users import Chunk, generate
from bubblerank.generation.world import item_name, make_world, query_name
from bubblerank.problems import write_problems

_EXTENSIONS = {".parquet": "parquet", ".avro": "avro", ".jsonl": "jsonl", ".tsv": "yandex"}

_SYNC_MARKER = b"bubblerank sync."
"""Always the same 16 bytes: the same log is the same file."""


@dataclass
class Written:
    """What went into a log: `records` = sessions + duplicates; broken ones are among sessions."""

    records: int = 0
    sessions: int = 0
    late: int = 0
    duplicates: int = 0
    broken: int = 0
    clicks: int = 0

    def add(self, chunk: Chunk) -> None:
        """Count a chunk."""
        self.sessions += len(chunk.number)
        self.duplicates += int(chunk.duplicate.sum())
        self.records = self.sessions + self.duplicates
        self.late += int(chunk.late.sum())
        self.broken += int((chunk.broken > 0).sum())
        self.clicks += int(chunk.clicks[chunk.broken == 0].sum())


def write_log(
    path: Path,
    settings: LogSettings,
    log_format: str | None = None,
    told: Callable[[int], None] = lambda sessions: None,
) -> Written:
    """Write a log and, beside it, its truth (`problems_path`); each file appears whole or not.

    `told` is called with the number of sessions so far. At most one chunk is in memory.
    """
    log_format = log_format or format_of(path)
    if log_format not in WRITERS:
        raise UsageError(f"the log format must be one of {', '.join(WRITERS)}, got {log_format!r}")
    if log_format == "yandex" and (settings.late_rate or settings.duplicate_rate):
        raise UsageError(
            "a Yandex log has neither event times nor session ids of its own, so that nothing in "
            "it is late or a duplicate: leave out --late-rate and --duplicate-rate, or take "
            "--format parquet"
        )
    world = make_world(settings)
    written = Written()

    def chunks() -> Iterator[Chunk]:
        for chunk in generate(world):
            written.add(chunk)
            yield chunk
            told(written.sessions)

    with replacing(path) as temporary:
        WRITERS[log_format](temporary, chunks(), settings.randomised)
    write_problems(problems_path(path), world.problems())
    return written


def problems_path(log: Path) -> Path:
    """Where the truth of a log is: log.parquet has log.problems.jsonl beside it."""
    return log.with_name(f"{log.stem}.problems.jsonl")


def format_of(path: Path) -> str:
    """The format of an extension."""
    if path.suffix.lower() not in _EXTENSIONS:
        known = ", ".join(_EXTENSIONS)
        raise UsageError(f"--out {path}: name it with one of {known}, or give --format")
    return _EXTENSIONS[path.suffix.lower()]


def _write_parquet(path: Path, chunks: Iterable[Chunk], with_steps: bool) -> None:
    schema = schemas.arrow_schema("session")
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as writer:
        for chunk in chunks:
            writer.write_batch(to_records(chunk, with_steps))


def _write_avro(path: Path, chunks: Iterable[Chunk], with_steps: bool) -> None:
    import fastavro

    def records() -> Iterator[dict[str, object]]:
        for chunk in chunks:
            yield from _plain(to_records(chunk, with_steps)).to_pylist()

    with open(path, "wb") as file:
        fastavro.writer(
            file, schemas.load("session"), records(), codec="deflate", sync_marker=_SYNC_MARKER
        )


def _write_jsonl(path: Path, chunks: Iterable[Chunk], with_steps: bool) -> None:
    """Every second damaged record is cut in the middle of its line."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for chunk in chunks:
            rows = np.repeat(np.arange(len(chunk.number)), 1 + chunk.duplicate)
            cut = ((chunk.broken > 0) & (chunk.number % 2 == 0))[rows].tolist()
            records = _plain(to_records(chunk, with_steps)).to_pylist()
            for record, is_cut in zip(records, cut, strict=True):
                line = json.dumps(record, separators=(",", ":"))
                file.write((line[: len(line) // 2] if is_cut else line) + "\n")


def _write_yandex(path: Path, chunks: Iterable[Chunk], with_steps: bool) -> None:
    """A damaged query action ends after the query, and its clicks are missing.

    The region is 1; TimePassed counts the actions of a session, as times have no place here.
    """
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for chunk in chunks:
            rows = zip(
                chunk.number.tolist(),
                chunk.query.tolist(),
                chunk.items.tolist(),
                chunk.clicks.tolist(),
                (chunk.broken > 0).tolist(),
                strict=True,
            )
            for number, query, items, clicks, broken in rows:
                opening = f"{number}\t0\tQ\t{query_name(query)}"
                if broken:
                    file.write(opening + "\n")
                    continue
                names = [item_name(query, item) for item in items]
                file.write("\t".join([opening, "1", *names]) + "\n")
                clicked = [name for name, click in zip(names, clicks, strict=True) if click]
                for passed, name in enumerate(clicked, start=1):
                    file.write(f"{number}\t{passed}\tC\t{name}\n")


def _plain(records: pa.RecordBatch) -> pa.RecordBatch:
    """The records with event times as whole microseconds."""
    place = records.schema.get_field_index("event_time")
    micros = records.column("event_time").cast(pa.int64())
    return records.set_column(place, "event_time", micros)


WRITERS = {
    "parquet": _write_parquet,
    "avro": _write_avro,
    "jsonl": _write_jsonl,
    "yandex": _write_yandex,
}
