"""A closed loop as a stream: arrivals of users come in, and every display gets its clicks."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from bubblerank import state_codec, varints
from bubblerank.closed_loop import Advance, Experiment, Progress, advance_compiled, begin
from bubblerank.config import RankerConfig
from bubblerank.metrics import Scorecard
from bubblerank.problems import Problem
from bubblerank.sessions.packed_text import Text
from bubblerank.simulation import make_experiment, metric_row
from bubblerank.stream import frames
from bubblerank.stream.outputs import Kept, Output, Stepped
from bubblerank.stream.packed_rows import (
    CHUNK_ROWS,
    DisplayRows,
    Stream,
    pack_displays,
    pack_statistic,
)
from bubblerank.stream.tables import record_table

_TASK, _ARRIVALS, _LOOP = b"TASK", b"ARRV", b"LOOP"
_VERSION = 1


@dataclass(frozen=True)
class Task:
    """One ranker on one problem in one run."""

    ranker: str
    problem: Problem
    run: int

    @property
    def key(self) -> str:
        """The key of the task's learner in the stream."""
        return f"{self.ranker}/{self.problem.click_model}/{self.run}/{self.problem.query}"

    def to_bytes(self) -> bytes:
        """The element that opens the task's stream."""
        record = {"ranker": self.ranker, "run": self.run, "problem": self.problem.to_record()}
        return frames.pack(_TASK, _VERSION, [json.dumps(record).encode("utf-8")])

    @staticmethod
    def from_bytes(data: bytes) -> "Task":
        """The task of an element."""
        (content,) = frames.unpack(_TASK, _VERSION, data)
        record = json.loads(content)
        return Task(record["ranker"], Problem.from_record(record["problem"]), record["run"])


def arrivals(first: int, count: int) -> bytes:
    """The element that says: ``count`` users arrive, the first of them in step ``first``."""
    return frames.pack(_ARRIVALS, _VERSION, [varints.encode([first, count])])


def arrival_blocks(steps: int, block: int) -> Iterator[tuple[int, bytes]]:
    """(first step, element) of all arrivals, in blocks of at most ``block`` users."""
    for first in range(1, steps + 1, block):
        yield first, arrivals(first, min(block, steps + 1 - first))


@dataclass(frozen=True)
class Simulation:
    """How closed loops are run; the event time of a user is the step, in microseconds."""

    config: RankerConfig
    seed: int
    top: int
    checkpoints: tuple[int, ...]
    displays: bool = False

    def turn(
        self, key: str, cell: bytes | None, elements: list[bytes], upto_us: int | None
    ) -> Iterator[Output | Stepped | Kept]:
        """See ``bubblerank.stream.outputs.Learner``."""
        tasks = [data for data in elements if frames.tag_of(data) == _TASK]
        if cell is None and not tasks:
            yield Kept(b"", tuple(elements))
            return
        content, state, sums = (
            frames.unpack(_LOOP, _VERSION, cell) if cell else (tasks[0], b"", b"")
        )
        task = Task.from_bytes(content)
        experiment = self._experiment(task)
        progress = begin(experiment)
        if state:
            card = Scorecard(*varints.decode(sums))
            progress = Progress(state_codec.decode(state, experiment.config)[1], card)
        ready, waiting = _split(elements, upto_us)
        counts = {"read": 0, "ranked": 0}
        for count in _unseen(ready, progress.state.step):
            counts["read"] += count
            counts["ranked"] += count
            for steps in self._chunks(count):
                advance = advance_compiled(
                    experiment, progress, steps, self.checkpoints, self.displays
                )
                yield from _outputs(task, experiment, progress.state.step + 1, advance)
                progress = advance.progress
                yield Stepped(steps)
        if upto_us is None and task.ranker == "bubblerank":
            yield _statistics(task, experiment, progress)
        kept = [
            content,
            state_codec.encode(task.ranker, progress.state),
            varints.encode(astuple(progress.card)),
        ]
        yield Kept(frames.pack(_LOOP, _VERSION, kept), waiting, counts)

    def _experiment(self, task: Task) -> Experiment:
        return make_experiment(
            task.problem, task.ranker, self.config, task.run, self.seed, self.top
        )

    def _chunks(self, count: int) -> Iterable[int]:
        if not self.displays:
            return [count]
        return [min(CHUNK_ROWS, count - done) for done in range(0, count, CHUNK_ROWS)]


def _split(
    elements: Sequence[bytes], upto_us: int | None
) -> tuple[list[tuple[int, int]], tuple[bytes, ...]]:
    """Arrivals as (first step, count) that are due, and those that are not."""
    ready, waiting = [], []
    for data in elements:
        if frames.tag_of(data) != _ARRIVALS:
            continue
        first, count = varints.decode(frames.unpack(_ARRIVALS, _VERSION, data)[0])
        if upto_us is None or first + count - 1 < upto_us:
            ready.append((first, count))
        else:
            waiting.append(data)
    return sorted(ready), tuple(waiting)


def _unseen(ready: Sequence[tuple[int, int]], step: int) -> Iterator[int]:
    """How many users of each block have not been served yet; blocks must follow each other."""
    for first, count in ready:
        if first > step + 1:
            raise ValueError(f"arrivals have a gap: step {step + 1} is missing before {first}")
        new = first + count - 1 - step
        if new > 0:
            step += new
            yield new


def _outputs(task: Task, experiment: Experiment, first: int, advance: Advance) -> Iterator[Output]:
    rows, displays = advance.checkpoints, advance.displays
    if rows:
        records = [metric_row(experiment, row) for row in rows]
        yield Output("metric", record_table("metric", records))
    if displays is not None:
        steps = np.arange(first, first + len(displays.displayed), dtype=np.int64)
        packed = pack_displays(DisplayRows(_stream(task), steps, None, None, displays))
        yield Output("display", packed)


def _stream(task: Task) -> Stream:
    return Stream(task.ranker, task.problem.query, task.run, Text.of(task.problem.items))


def _statistics(task: Task, experiment: Experiment, progress: Progress) -> Output:
    state = progress.state
    level = experiment.config.log_inverse_delta(state.horizon)
    return Output("statistic", pack_statistic(_stream(task), state, level))
