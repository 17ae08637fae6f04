"""The pipeline of `bubblerank fit`: a click log in, its sufficient statistics out.

All that fitting needs are the counts of `bubblerank.fitting.list_counts`. Beam adds them up; what
is left has a row per distinct list, and is fitted in memory by the same code as a small log.
"""

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics

from bubblerank.fitting.list_counts import CountLists, count_block, merge_counts
from bubblerank.fitting.read import LogCounts
from bubblerank.sessions.block import decode
from bubblerank.sessions.encode import DEFAULT_BLOCK_SESSIONS
from pipelines.read_sessions import ReadSessions, SessionBlocks
from pipelines.write_tables import BOOKS

_REASON = "reason_"
SHARDS = 64
"""Queries are counted in this many groups, for few large tables instead of many small ones."""


@dataclass(frozen=True)
class CountSettings:
    """What to count, and the folder for the counts."""

    logs: tuple[str, ...]
    folder: str
    log_format: str | None = None
    column_map: Mapping[str, str] = field(default_factory=dict)
    block_sessions: int = DEFAULT_BLOCK_SESSIONS


def build(pipeline: beam.Pipeline, settings: CountSettings) -> None:
    """Add the reading and counting of a log to a pipeline."""
    sessions = pipeline | "ReadSessions" >> ReadSessions(
        settings.logs, settings.log_format, settings.column_map, settings.block_sessions
    )
    _ = (
        sessions
        | "CountListsOfQueries" >> CountListsOfQueries()
        | "AsLines" >> beam.Map(_as_line).with_output_types(str)
        | "WriteCounts" >> beam.io.WriteToText(f"{settings.folder}/counts")
    )


class CountListsOfQueries(beam.PTransform):
    """From sessions to tables of list counts, each as an Arrow IPC stream."""

    def expand(self, sessions: SessionBlocks) -> beam.PCollection:
        """Count blocks, add up by group of queries; count the reasons of rejects."""
        _ = sessions.rejects | "CountReasons" >> beam.ParDo(_CountReasons())
        return (
            sessions.blocks
            | "Unwindow" >> beam.WindowInto(beam.window.GlobalWindows())
            | "Group" >> beam.Map(_by_group).with_output_types(tuple[int, bytes])
            | "AddUp" >> beam.CombinePerKey(_AddUp())
            | "Tables" >> beam.Values().with_output_types(bytes)
        )


def read_counts(folder: str, counters: Mapping[str, int]) -> LogCounts:
    """What a pipeline of `build` wrote, with its counters, as `count_files` would give it."""
    tables = []
    for found in FileSystems.match([f"{folder}/counts*"])[0].metadata_list:
        with FileSystems.open(found.path) as file:
            tables += [_from_ipc(base64.b64decode(line)) for line in file.read().splitlines()]
    reasons = {
        name.removeprefix(_REASON): number
        for name, number in sorted(counters.items())
        if name.startswith(_REASON)
    }
    return LogCounts(
        merge_counts(tables),
        counters.get("read", 0),
        counters.get("rejected", 0),
        counters.get("click_outside_list", 0),
        reasons,
    )


def _by_group(element: tuple[str, bytes]) -> tuple[int, bytes]:
    query, data = element
    return zlib.crc32(query.encode("utf-8")) % SHARDS, data


class _AddUp(beam.CombineFn):
    """`CountLists` over blocks; accumulators are lists of tables."""

    def __init__(self) -> None:
        self._counts = CountLists()

    def create_accumulator(self) -> list[pa.Table]:
        return self._counts.create()

    def add_input(self, counted: list[pa.Table], data: bytes) -> list[pa.Table]:
        return self._counts.add(counted, count_block(decode(data)))

    def merge_accumulators(self, accumulators: Iterable[list[pa.Table]]) -> list[pa.Table]:
        return self._counts.merge(accumulators)

    def compact(self, counted: list[pa.Table]) -> list[pa.Table]:
        return [self._counts.extract(counted)]

    def extract_output(self, counted: list[pa.Table]) -> bytes:
        return _to_ipc(self._counts.extract(counted))


class _CountReasons(beam.DoFn):
    def process(self, rejects: bytes) -> Iterator[bytes]:
        reasons = _from_ipc(rejects).column("reason").to_pylist()
        for reason in reasons:
            Metrics.counter(BOOKS, _REASON + reason).inc()
        return iter(())


def _as_line(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _from_ipc(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()
