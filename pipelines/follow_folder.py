"""FollowFolder: the sessions of a folder's files, as they come, with an honest watermark."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from os.path import basename
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Duration

from bubblerank.sessions.block import decode
from bubblerank.stream.rounds import NEVER_US
from pipelines.folder_progress import FolderProgress, FolderRestrictions, FolderWatermarks
from pipelines.folder_watch import FolderWatch
from pipelines.read_sessions import ReadSessionFiles, SessionBlocks
from pipelines.write_tables import BOOKS

_BLOCKS, _REJECTS = "blocks", "rejects"


@dataclass(frozen=True)
class Following:
    """Which folder is followed, how, and for how long.

    poll_every_s: between two looks. lateness_us: how far the watermark stays behind the newest
    event time seen. idle_timeout_s: end when nothing came for that long (None: never).
    until_us: end when the watermark reaches this event time; sessions at or after it are left.
    """

    folder: str
    poll_every_s: float = 2.0
    lateness_us: int = 0
    idle_timeout_s: float | None = None
    until_us: int | None = None

    def reaches_end(self, newest_us: int) -> bool:
        """Whether the watermark of this newest event time ends it all."""
        return self.until_us is not None and newest_us - self.lateness_us >= self.until_us


class FollowFolder(beam.PTransform):
    """Sessions of all files that come into a folder, as an unbounded source.

    The files that one look finds complete are read one after another by one worker; only when
    all of them have been emitted does the watermark rise, to the newest event time seen less
    the lateness. So no session is late against the files that came together with it.
    """

    def __init__(
        self, following: Following, files: ReadSessionFiles, log_format: str | None = None
    ):
        super().__init__()
        self._following = following
        self._read = _ReadFolder(following, files, log_format)

    def expand(self, pbegin: beam.pvalue.PBegin) -> SessionBlocks:
        """One element, the folder, and the splittable reader of it."""
        found = (
            pbegin
            | "NameFolder" >> beam.Create([self._following.folder], reshuffle=False)
            | "ReadFolder"
            >> beam.ParDo(self._read)
            .with_output_types(tuple[str, bytes], rejects=bytes)
            .with_outputs(_REJECTS, main=_BLOCKS)
        )
        found[_REJECTS].is_bounded = False
        return SessionBlocks(found[_BLOCKS], found[_REJECTS])


class _ReadFolder(beam.DoFn):
    PROGRESS = beam.DoFn.RestrictionParam(FolderRestrictions())
    WATERMARK = beam.DoFn.WatermarkEstimatorParam(FolderWatermarks())

    def __init__(
        self, following: Following, files: ReadSessionFiles, log_format: str | None
    ) -> None:
        self._following = following
        self._files = files
        self._log_format = log_format
        self._watch: FolderWatch | None = None

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        folder: str,
        tracker: Any = PROGRESS,
        watermark: Any = WATERMARK,
    ) -> Iterator[Any]:
        """Read what is complete, then ask to be called again."""
        progress = FolderProgress.from_json(tracker.current_restriction())
        watch = self._watch_after(progress)
        found = watch.look()
        now = time.time()
        if found or watch.stirs or not progress.quiet_since_s:
            progress = progress._replace(quiet_since_s=now)
        for path in found:
            progress = progress._replace(taken=(*progress.taken, basename(path)))
            if not tracker.try_claim(progress):
                return
            newest_us = progress.newest_us
            for output in self._files.read_file(path):
                if isinstance(output, TimestampedValue):
                    newest_us = max(newest_us, newest_event_time_us(output.value))
                yield output
            progress = progress._replace(newest_us=newest_us)
            if not tracker.try_claim(progress):
                return
        if progress.newest_us > NEVER_US:
            watermark.rise_to(progress.newest_us - self._following.lateness_us)
        idle_s = self._following.idle_timeout_s
        idle = idle_s is not None and now - progress.quiet_since_s >= idle_s
        if idle or self._following.reaches_end(progress.newest_us):
            tracker.try_claim(progress._replace(ended=True))
            return
        if tracker.try_claim(progress):
            tracker.defer_remainder(Duration(self._following.poll_every_s))

    def _watch_after(self, progress: FolderProgress) -> FolderWatch:
        """The watch that this worker has, if it has seen the same files, else a new one."""
        watch = self._watch
        if watch is None or not watch.has_taken(progress.taken):
            watch = FolderWatch(self._following.folder, self._log_format, progress.taken)
        self._watch = watch
        return watch


class LeaveAfter(beam.PTransform):
    """Blocks without their sessions at or after ``until_us``.

    Those are not `read` in the books' sense; the counter `after_until` tells how many there are.
    """

    def __init__(self, until_us: int) -> None:
        super().__init__()
        self._until_us = until_us

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        """Cut each block."""
        return blocks | beam.ParDo(_LeaveAfter(self._until_us)).with_output_types(tuple[str, bytes])


class _LeaveAfter(beam.DoFn):
    def __init__(self, until_us: int) -> None:
        self._until_us = until_us
        self._read = Metrics.counter(BOOKS, "read")
        self._left = Metrics.counter(BOOKS, "after_until")

    def process(self, element: tuple[str, bytes]) -> Iterator[tuple[str, bytes]]:
        query, data = element
        block = decode(data)
        kept = int(np.searchsorted(block.event_time_us, self._until_us, side="left"))
        if kept == len(block):
            yield element
            return
        self._left.inc(len(block) - kept)
        self._read.inc(kept - len(block))
        if kept:
            yield query, block.select(np.arange(kept)).to_bytes()


def newest_event_time_us(element: tuple[str, bytes]) -> int:
    """The event time of a block's last session."""
    return int(decode(element[1]).event_time_us[-1])
