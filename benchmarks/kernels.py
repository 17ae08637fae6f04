"""Nanoseconds per step of each ranker and click model, compiled against readable.

The hand-made problem of the tests, ten items on ten positions. Compiled: one trajectory of
300,000 steps, with metrics. Readable: the mean of short pieces at the beginning, in the middle
and at the end of that trajectory, with metrics. CascadeKL-UCB is also set against a compiled
bisection over the same steps, and (early) over the first 50,000, where more bounds are in
doubt. CPU time, the shortest of three passes; compiling is not counted.
"""

import time
from collections.abc import Callable, Iterator

from benchmarks import bisection
from bubblerank.click_models import CascadeModel, DependentClickModel, PositionBasedModel
from bubblerank.closed_loop import (
    Experiment,
    Progress,
    advance_compiled,
    advance_reference,
    begin,
)
from bubblerank.config import RankerConfig
from bubblerank.rankers import RANKER_NAMES

STEPS = 300_000
PASSES = 3
PIECE = 400
EARLY_STEPS = 50_000
AT_LEAST = {"bubblerank": 300, "batchrank": 50, "toprank": 50}
AT_LEAST_BISECTION = 40

_ATTRACTION = (0.32, 0.70, 0.12, 0.45, 0.17, 0.03, 0.24, 0.01, 0.08, 0.05)
MODELS = [
    CascadeModel(_ATTRACTION),
    DependentClickModel(_ATTRACTION, tuple(0.95 - 0.05 * k for k in range(1, 11))),
    PositionBasedModel(_ATTRACTION, tuple(k**-0.7 for k in range(1, 11))),
]


def cpu_seconds(work: Callable[[], object]) -> float:
    """The shortest of some passes."""
    passes = []
    for _ in range(PASSES):
        begun = time.process_time()
        work()
        passes.append(time.process_time() - begun)
    return min(passes)


def compiled_nanoseconds(experiment: Experiment, steps: int) -> float:
    advance_compiled(experiment, begin(experiment), 100)
    work = cpu_seconds(lambda: advance_compiled(experiment, begin(experiment), steps, [steps]))
    return work / steps * 1e9


def readable_nanoseconds(experiment: Experiment) -> float:
    def piece(start: Progress) -> float:
        return cpu_seconds(lambda: advance_reference(experiment, start, PIECE))

    reached = [
        advance_compiled(experiment, begin(experiment), steps).progress
        for steps in (0, STEPS // 2, STEPS - PIECE)
    ]
    return sum(map(piece, reached)) / (len(reached) * PIECE) * 1e9


def bisection_nanoseconds(experiment: Experiment, steps: int) -> float:
    bisection.learn(experiment, 10)
    return cpu_seconds(lambda: bisection.learn(experiment, steps)) / steps * 1e9


def row(
    experiment: Experiment, compiled: float, against: str, other: float, at_least: int | None
) -> dict[str, object]:
    ratio = other / compiled
    verdict = "" if at_least is None else "yes" if ratio >= at_least else "NO"
    return {
        "ranker": experiment.ranker,
        "clicks": experiment.model.name,
        "ns/step": compiled,
        "against": against,
        "its ns/step": other,
        "times faster": ratio,
        "at least": "" if at_least is None else str(at_least),
        "met": verdict,
    }


def run() -> Iterator[dict[str, object]]:
    for ranker in RANKER_NAMES:
        for model in MODELS:
            experiment = Experiment(ranker, "benchmark", model, RankerConfig(horizon=STEPS))
            compiled = compiled_nanoseconds(experiment, STEPS)
            readable = readable_nanoseconds(experiment)
            yield row(experiment, compiled, "readable", readable, AT_LEAST.get(ranker))
            if ranker == "cascade-klucb":
                other = bisection_nanoseconds(experiment, STEPS)
                yield row(experiment, compiled, "bisection", other, AT_LEAST_BISECTION)
                early = compiled_nanoseconds(experiment, EARLY_STEPS)
                other = bisection_nanoseconds(experiment, EARLY_STEPS)
                yield row(experiment, early, "bisection, early", other, None)
