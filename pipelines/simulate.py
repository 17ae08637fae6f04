"""The pipeline of `bubblerank simulate`: problems in, closed loops, tables out."""

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp

from bubblerank.closed_loop import begin
from bubblerank.errors import raise_all, unknown_name
from bubblerank.problems import Problem
from bubblerank.rankers import RANKER_NAMES
from bubblerank.simulation import make_experiment
from bubblerank.stream.simulate import Simulation, Task, arrival_blocks
from pipelines.rank_sessions import RankSessions
from pipelines.write_tables import WriteTables

DEFAULT_BLOCK_STEPS = 1_000_000


@dataclass(frozen=True)
class SimulateSettings:
    """Everything that determines a simulation, and where it is written."""

    simulation: Simulation
    problems: tuple[Problem, ...]
    rankers: tuple[str, ...]
    runs: int
    steps: int
    out: str
    block_steps: int = DEFAULT_BLOCK_STEPS

    def tasks(self) -> Iterator[Task]:
        """Every ranker on every problem in every run."""
        for problem in self.problems:
            for ranker in self.rankers:
                for run in range(self.runs):
                    yield Task(ranker, problem, run)

    def check(self) -> None:
        """Raise one UsageError that tells everything that would fail later."""
        complaints: dict[str, None] = {}
        for ranker in self.rankers:
            if ranker not in RANKER_NAMES:
                complaints[unknown_name("ranker", ranker, RANKER_NAMES)] = None
        raise_all(complaints)
        simulation = self.simulation
        for ranker in self.rankers:
            for problem in self.problems:
                try:
                    begin(
                        make_experiment(
                            problem, ranker, simulation.config, 0, simulation.seed, simulation.top
                        )
                    )
                except ValueError as error:
                    complaints[str(error)] = None
        raise_all(complaints)


def build(pipeline: beam.Pipeline, settings: SimulateSettings) -> None:
    """Add the whole simulation to a pipeline."""
    ranked = (
        pipeline
        | "Tasks" >> beam.Create([task.to_bytes() for task in settings.tasks()])
        | "Arrive" >> beam.ParDo(_Arrive(settings.steps, settings.block_steps))
        | RankSessions(settings.simulation)
    )
    for kind, part in (("metric", "metrics"), ("statistic", "statistics"), ("display", "displays")):
        if kind != "display" or settings.simulation.displays:
            folder = f"{settings.out}/{part}"
            _ = ranked[kind] | f"Write {part}" >> WriteTables(folder, kind)


@beam.typehints.with_input_types(bytes)
@beam.typehints.with_output_types(tuple[str, bytes])
class _Arrive(beam.DoFn):
    """A task, and after it its users in blocks."""

    def __init__(self, steps: int, block_steps: int) -> None:
        self._steps = steps
        self._block_steps = block_steps

    def process(self, task: bytes) -> Iterator[TimestampedValue]:
        key = Task.from_bytes(task).key
        yield TimestampedValue((key, task), MIN_TIMESTAMP)
        for first, block in arrival_blocks(self._steps, self._block_steps):
            yield TimestampedValue((key, block), Timestamp(micros=first))
