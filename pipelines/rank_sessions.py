"""RankSessions: the one stateful step, keyed by query, in event-time order."""

from collections.abc import Generator, Iterable, Iterator
from functools import cache
from typing import Any

import apache_beam as beam
from apache_beam.coders import BytesCoder, VarIntCoder
from apache_beam.metrics import Metrics
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import (
    BagStateSpec,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
)
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp

from bubblerank.stream.outputs import Kept, Learner, Output, Stepped
from bubblerank.stream.rounds import CARRY
from pipelines import pulse
from pipelines.write_tables import BOOKS

KINDS = ("display", "statistic", "metric", "reject", CARRY)
MILLISECOND_US = 1000
"""Runners keep the times of timers in whole milliseconds."""
_MARGIN_US = 1000 * 86_400 * 1_000_000
END_OF_TIME = Timestamp(
    micros=(GlobalWindow().max_timestamp().micros - _MARGIN_US) // MILLISECOND_US * MILLISECOND_US
)
"""The last turn: so early that the windows its rows are written in end before time does."""


class RankSessions(beam.PTransform):
    """Elements (query, bytes) through a learner; outputs by kind, packed or as Arrow IPC streams.

    Elements wait in a bag until the watermark passes; then the learner takes its turn on all of
    them at once: it orders, steps, and gives back what must still wait. A ranker's state is one
    cell of bytes, read and written once a turn, in the global window. With ``every_s`` the turns
    of a query come each time the watermark passes a multiple of that many seconds of event
    time; without, there is one turn, at the end of the input.
    """

    def __init__(self, learner: Learner, every_s: float | None = None) -> None:
        super().__init__()
        if every_s is not None and not every_s >= 0.001:
            raise ValueError(f"every_s must be at least 0.001 seconds, got {every_s}")
        self._learner = learner
        self._every_us = None if every_s is None else round(every_s * 1000) * MILLISECOND_US

    def expand(self, elements: beam.PCollection) -> Any:
        """Global window, then the stateful step."""
        if not elements.windowing.is_default():
            elements |= "Unwindow" >> beam.WindowInto(GlobalWindows())
        if self._every_us is None:
            rank: beam.DoFn = _RankOnce(self._learner)
        else:
            rank = _Rank(self._learner, self._every_us)
        return elements | "Rank" >> beam.ParDo(rank).with_output_types(
            bytes, **dict.fromkeys(KINDS, bytes)
        ).with_outputs(*KINDS)


@cache
def _counter(name: str) -> Any:
    return Metrics.counter(BOOKS, name)


def _outputs_of(turn: Iterator[Output | Stepped | Kept]) -> Generator[Any, None, Kept]:
    """Emit what a turn gives, count it, and return what it keeps."""
    kept = Kept(b"")
    for output in turn:
        if isinstance(output, Output):
            yield beam.pvalue.TaggedOutput(output.kind, output.data)
        elif isinstance(output, Stepped):
            pulse.add_ranked(output.sessions)
        else:
            kept = output
    for name, number in kept.counts.items():
        _counter(name).inc(number)
    return kept


@beam.typehints.with_input_types(tuple[str, bytes])
@beam.typehints.with_output_types(bytes)
class _RankOnce(beam.DoFn):
    """One turn for each query, at the end of the input: nothing needs to be kept."""

    WAITING = BagStateSpec("waiting", BytesCoder())
    DUE = TimerSpec("due", TimeDomain.WATERMARK)

    def __init__(self, learner: Learner) -> None:
        self._learner = learner

    def process(
        self,
        element: tuple[str, bytes],
        waiting: Any = beam.DoFn.StateParam(WAITING),
        due: Any = beam.DoFn.TimerParam(DUE),
    ) -> Iterable[bytes]:
        """Let an element wait for the end."""
        waiting.add(element[1])
        due.set(END_OF_TIME)
        return ()

    @on_timer(DUE)
    def take_turn(
        self, key: str = beam.DoFn.KeyParam, waiting: Any = beam.DoFn.StateParam(WAITING)
    ) -> Iterator[Any]:
        """Step through everything."""
        yield from _outputs_of(self._learner.turn(key, None, list(waiting.read()), None))
        waiting.clear()


@beam.typehints.with_input_types(tuple[str, bytes])
@beam.typehints.with_output_types(bytes)
class _Rank(beam.DoFn):
    CELL = ReadModifyWriteStateSpec("cell", BytesCoder())
    WAITING = BagStateSpec("waiting", BytesCoder())
    DUE_AT = ReadModifyWriteStateSpec("due_at", VarIntCoder())
    DUE = TimerSpec("due", TimeDomain.WATERMARK)

    def __init__(self, learner: Learner, every_us: int) -> None:
        self._learner = learner
        self._every_us = every_us

    def process(
        self,
        element: tuple[str, bytes],
        timestamp: Timestamp = beam.DoFn.TimestampParam,
        waiting: Any = beam.DoFn.StateParam(WAITING),
        due_at: Any = beam.DoFn.StateParam(DUE_AT),
        due: Any = beam.DoFn.TimerParam(DUE),
    ) -> Iterable[bytes]:
        """Let an element wait, and see to it that its turn comes."""
        waiting.add(element[1])
        known = due_at.read()
        wanted = END_OF_TIME.micros
        if timestamp > MIN_TIMESTAMP:
            wanted = self._turn_after(timestamp.micros + 1)
        if known is None or wanted < known:
            due.set(Timestamp(micros=wanted))
            due_at.write(wanted)
        return ()

    @on_timer(DUE)
    def take_turn(
        self,
        key: str = beam.DoFn.KeyParam,
        timestamp: Timestamp = beam.DoFn.TimestampParam,
        cell: Any = beam.DoFn.StateParam(CELL),
        waiting: Any = beam.DoFn.StateParam(WAITING),
        due_at: Any = beam.DoFn.StateParam(DUE_AT),
        due: Any = beam.DoFn.TimerParam(DUE),
    ) -> Iterator[Any]:
        """Step through what comes before the watermark; at the end of time, through all."""
        ends = timestamp >= END_OF_TIME
        upto_us = None if ends else timestamp.micros
        turn = self._learner.turn(key, cell.read() or None, list(waiting.read()), upto_us)
        kept = yield from _outputs_of(turn)
        waiting.clear()
        for element in kept.waiting:
            waiting.add(element)
        cell.write(kept.cell)
        if not ends:
            wanted = END_OF_TIME.micros
            if kept.wake_us is not None:
                wanted = self._turn_after(kept.wake_us)
            due.set(Timestamp(micros=wanted))
            due_at.write(wanted)

    def _turn_after(self, time_us: int) -> int:
        """The first time for turns that is not before ``time_us``."""
        return min(-(-time_us // self._every_us) * self._every_us, END_OF_TIME.micros)
