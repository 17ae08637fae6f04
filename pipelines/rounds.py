"""One round of a followed folder: a bounded pipeline over the files that newly came.

What a query must not forget is written beside the run and read by the next round, so that
nothing grows in memory from round to round.
"""

import struct
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.pvalue import AsSingleton

from bubblerank.stream.rounds import CARRY, NEVER_US, Carry, Round, stamp
from pipelines.base_lists import StartFromLists, StartFromStatistics
from pipelines.follow_folder import Following, LeaveAfter, newest_event_time_us
from pipelines.rank_sessions import RankSessions
from pipelines.read_sessions import ReadSessionFiles
from pipelines.replay import ReplaySettings
from pipelines.write_tables import BOOKS, WriteTables

NEWEST, CARRIED_IN, CARRIED_OUT = "newest_event_time_us", "carried_in", "carried_out"
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class RoundSettings:
    """One round of a replay.

    files: what to read. newest_us: the newest event time of the rounds before. carried: the
    folder that the round before wrote (None: this is the first). carry_to: where this one
    writes for the next (None: this is the last).
    """

    replay: ReplaySettings
    following: Following
    files: tuple[str, ...] = ()
    newest_us: int = NEVER_US
    carried: str | None = None
    carry_to: str | None = None


def build_round(pipeline: beam.Pipeline, settings: RoundSettings) -> None:
    """Add a round to a pipeline.

    Its counters tell, besides the books, the newest event time seen so far (NEWEST) and how
    many queries were carried in and out.
    """
    replay, following = settings.replay, settings.following
    files = ReadSessionFiles(replay.log_format, replay.column_map, replay.block_sessions)
    sessions = pipeline | "NameFiles" >> beam.Create(settings.files) | "ReadFiles" >> files
    newest = (
        sessions.blocks
        | "NewestOfBlock" >> beam.Map(newest_event_time_us).with_output_types(int)
        | "Newest" >> beam.CombineGlobally(_newest, settings.newest_us)
    )
    _ = newest | "NoteNewest" >> beam.Map(_note_newest)
    blocks = sessions.blocks
    if following.until_us is not None:
        blocks |= "LeaveAfter" >> LeaveAfter(following.until_us)
    elements = [blocks]
    if settings.carried is None:
        elements += _starts(pipeline, replay)
    else:
        elements.append(pipeline | "ReadCarried" >> _ReadCarried(settings.carried))
    ranked = (
        elements
        | beam.Flatten()
        | "Stamp"
        >> beam.Map(_stamp, AsSingleton(newest), following.lateness_us).with_output_types(
            tuple[str, bytes]
        )
        | RankSessions(Round(replay.replay, last=settings.carry_to is None))
    )
    if settings.carry_to is not None:
        _ = ranked[CARRY] | "WriteCarried" >> beam.ParDo(_WriteCarried(settings.carry_to))
    rejects = (sessions.rejects, ranked["reject"]) | "AllRejects" >> beam.Flatten()
    for rows, kind, part in (
        (ranked["display"], "display", "displays"),
        (ranked["statistic"], "statistic", "statistics"),
        (rejects, "reject", "rejects"),
    ):
        _ = rows | f"Write {part}" >> WriteTables(f"{replay.out}/{part}", kind)


def _starts(pipeline: beam.Pipeline, replay: ReplaySettings) -> list[beam.PCollection]:
    starts = []
    if replay.base_lists is not None:
        starts.append(pipeline | "GivenLists" >> StartFromLists(replay.base_lists))
    if replay.resume:
        resumed = StartFromStatistics(replay.resume, replay.replay.config)
        starts.append(pipeline | "Resume" >> resumed)
    return starts


def _newest(times_us: Iterable[int], before_us: int) -> int:
    return max([before_us, *times_us])


def _note_newest(time_us: int) -> None:
    Metrics.counter(BOOKS, NEWEST).inc(time_us)


def _stamp(element: tuple[str, bytes], newest_us: int, lateness_us: int) -> tuple[str, bytes]:
    query, data = element
    return query, stamp(data, newest_us - lateness_us)


class _WriteCarried(beam.DoFn):
    """A file for each bundle; a round that fails ends the run, so none is ever read in part."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None

    def process(self, data: bytes) -> None:
        if self._file is None:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
            self._file = (Path(self._folder) / uuid.uuid4().hex).open("wb")
        self._file.write(_LENGTH.pack(len(data)))
        self._file.write(data)
        Metrics.counter(BOOKS, CARRIED_OUT).inc()

    def finish_bundle(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class _ReadCarried(beam.PTransform):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self._paths = sorted(str(path) for path in Path(folder).glob("*"))

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            pbegin
            | beam.Create(self._paths)
            | beam.FlatMap(_read_carried).with_output_types(tuple[str, bytes])
        )


def _read_carried(path: str) -> Iterator[tuple[str, bytes]]:
    with open(path, "rb") as file:
        while head := file.read(_LENGTH.size):
            data = file.read(_LENGTH.unpack(head)[0])
            Metrics.counter(BOOKS, CARRIED_IN).inc()
            yield Carry.from_bytes(data).key, data


def take(counters: dict[str, Any], name: str) -> int:
    """A counter that is about rounds, taken out of those that go into the manifest."""
    return int(counters.pop(name, 0))
