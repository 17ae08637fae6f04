"""ReadSessions: from files of sessions to keyed blocks and rejects."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from bubblerank.errors import UsageError, raise_all
from bubblerank.sessions.encode import DEFAULT_BLOCK_SESSIONS
from bubblerank.sessions.gather import gather_blocks
from bubblerank.sessions.parts import Part
from bubblerank.sessions.readers import check_column_map, format_of, read_part, split_file
from bubblerank.sessions.rejects import to_ipc
from pipelines import pulse

_REJECTS_PER_ELEMENT = 10_000
_BLOCKS, _REJECTS = "blocks", "rejects"


class SessionBlocks(NamedTuple):
    """What reading gives.

    `blocks`: `(query, bytes)`, the bytes being for `bubblerank.sessions.block.decode`, with the
    timestamp of the block's earliest session. `rejects`: Arrow IPC streams of reject rows.
    """

    blocks: beam.PCollection
    rejects: beam.PCollection


class ReadSessions(beam.PTransform):
    """Read the sessions of all files that match `patterns` into blocks of one query each.

    `log_format` is `avro`, `parquet`, `jsonl` or `yandex`, else each file's extension tells it;
    `column_map` gives their names for our columns; a block has at most `block_sessions` sessions.
    Wrong options, and patterns that match nothing, raise UsageError here and now.

    Counts, in the namespace `books`: `read` (sessions and rejects), `rejected`, and
    `click_outside_list` (clicks on items that their list does not hold; their sessions are kept).
    """

    def __init__(
        self,
        patterns: Sequence[str],
        log_format: str | None = None,
        column_map: Mapping[str, str] | None = None,
        block_sessions: int = DEFAULT_BLOCK_SESSIONS,
    ) -> None:
        super().__init__()
        self._paths = expand_patterns(patterns, log_format)
        self._files = ReadSessionFiles(log_format, column_map, block_sessions)

    def expand(self, pbegin: beam.pvalue.PBegin) -> SessionBlocks:
        """Name the files, then read them."""
        return pbegin | "NameFiles" >> beam.Create(self._paths) | "ReadFiles" >> self._files


class ReadSessionFiles(beam.PTransform):
    """As `ReadSessions`, for a PCollection of paths: files that are found while the job runs."""

    def __init__(
        self,
        log_format: str | None = None,
        column_map: Mapping[str, str] | None = None,
        block_sessions: int = DEFAULT_BLOCK_SESSIONS,
    ) -> None:
        super().__init__()
        if block_sessions < 1:
            raise UsageError(f"a block holds at least 1 session, got {block_sessions}")
        self._read = _ReadPart(log_format, check_column_map(column_map), block_sessions)
        self._split = _SplitFile(log_format)

    def expand(self, paths: beam.PCollection) -> SessionBlocks:
        """Split files into parts, spread the parts over the workers, read each."""
        found = (
            paths
            | "SplitFiles" >> beam.ParDo(self._split).with_output_types(tuple[str, int, int, int])
            | "SpreadParts" >> beam.Reshuffle()
            | "ReadParts"
            >> beam.ParDo(self._read)
            .with_output_types(tuple[str, bytes], rejects=bytes)
            .with_outputs(_REJECTS, main=_BLOCKS)
        )
        return SessionBlocks(found[_BLOCKS], found[_REJECTS])

    def read_file(self, path: str) -> Iterator[Any]:
        """Blocks, and rejects as tagged outputs, of one file: for a source that reads by itself."""
        for part in self._split.process(path):
            yield from self._read.process(part)


def expand_patterns(patterns: Sequence[str], log_format: str | None = None) -> list[str]:
    """The files that `patterns` match, sorted, each once.

    Raises UsageError, with every complaint, for a pattern that matches no file and for a file
    whose format is not known.
    """
    if not patterns:
        raise UsageError("no log was named: give at least one file or glob")
    paths: set[str] = set()
    complaints = []
    for pattern, matched in zip(patterns, FileSystems.match(list(patterns)), strict=True):
        files = [found.path for found in matched.metadata_list if not os.path.isdir(found.path)]
        if os.path.isdir(pattern):
            complaints.append(f"{pattern} is a folder: name its files, as in {pattern}/*.parquet")
        elif not files:
            complaints.append(f"{pattern} matches no file: check the path, and quote the glob")
        paths.update(files)
    for path in sorted(paths):
        try:
            format_of(path, log_format)
        except UsageError as error:
            complaints.append(str(error))
    raise_all(dict.fromkeys(complaints))
    return sorted(paths)


def _open(path: str) -> Any:
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


class _SplitFile(beam.DoFn):
    """From a path to (path, start, stop, first position) of parts that can be read apart."""

    def __init__(self, log_format: str | None) -> None:
        self._log_format = log_format

    def process(self, path: str) -> Iterator[tuple[str, int, int, int]]:
        with _open(path) as file:
            for part in split_file(file, format_of(path, self._log_format)):
                yield (path, *part)


class _ReadPart(beam.DoFn):
    """From a part of a file to its blocks and rejects."""

    def __init__(
        self, log_format: str | None, column_map: dict[str, str], block_sessions: int
    ) -> None:
        self._log_format = log_format
        self._column_map = column_map
        self._block_sessions = block_sessions
        self._read = Metrics.counter("books", "read")
        self._rejected = Metrics.counter("books", "rejected")
        self._outside = Metrics.counter("books", "click_outside_list")

    def process(self, element: tuple[str, int, int, int]) -> Iterator[Any]:
        path, *bounds = element
        with _open(path) as file:
            file_format = format_of(path, self._log_format)
            chunks = read_part(file, path, file_format, self._column_map, Part(*bounds))
            for gathered in gather_blocks(chunks, path, self._block_sessions):
                self._read.inc(gathered.read)
                pulse.add_read(gathered.read)
                self._rejected.inc(gathered.rejected)
                self._outside.inc(gathered.clicks_outside)
                for query, first_event_time_us, data in gathered.blocks:
                    yield TimestampedValue((query, data), Timestamp(micros=first_event_time_us))
                for batch in gathered.rejects:
                    for first in range(0, batch.num_rows, _REJECTS_PER_ELEMENT):
                        rows = batch.slice(first, _REJECTS_PER_ELEMENT)
                        yield TaggedOutput(_REJECTS, to_ipc(rows))
