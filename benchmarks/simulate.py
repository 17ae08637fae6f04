"""Simulation of 100 problems for a million steps each: the pipeline against the library call.

Both in one process, kernels compiled before, CPU time, the shorter of two passes each.
Set BUBBLERANK_BENCH_SCALE=0.02 for a quick look (fewer steps).
"""

import tempfile
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.measuring import in_own_process, scaled, verdict

PROBLEMS = 100
STEPS = 1_000_000
CHECKPOINTS = 50
PASSES = 2
AT_MOST = 1.5


def measure(steps: int) -> tuple[float, float]:
    """CPU seconds of the library call and of the pipeline."""
    from bubblerank import simulate
    from bubblerank.config import RankerConfig
    from bubblerank.metrics import log_spaced
    from bubblerank.problems import Problem
    from bubblerank.stream.simulate import Simulation
    from pipelines.engine import choose_engine, run_pipeline
    from pipelines.simulate import SimulateSettings, build

    coins = np.random.default_rng(7)
    problems = tuple(
        Problem(
            query=f"q{number}",
            items=tuple(f"d{item}" for item in range(10)),
            click_model="CM",
            attraction=tuple(coins.uniform(0.02, 0.7, 10).round(3).tolist()),
        )
        for number in range(PROBLEMS)
    )

    def by_library(steps: int) -> float:
        begun = time.process_time()
        simulate(problems, ["bubblerank"], steps, checkpoints=CHECKPOINTS)
        return time.process_time() - begun

    def by_pipeline(steps: int) -> float:
        simulation = Simulation(
            RankerConfig(horizon=steps), 0, 5, tuple(log_spaced(steps, CHECKPOINTS))
        )
        options, _ = choose_engine()
        with tempfile.TemporaryDirectory() as folder:
            settings = SimulateSettings(simulation, problems, ("bubblerank",), 1, steps, folder)
            begun = time.process_time()
            run_pipeline(lambda pipeline: build(pipeline, settings), options)
            return time.process_time() - begun

    by_library(100)
    by_pipeline(100)
    library, pipeline = zip(
        *((by_library(steps), by_pipeline(steps)) for _ in range(PASSES)), strict=True
    )
    return min(library), min(pipeline)


def run() -> Iterator[dict[str, object]]:
    steps = scaled(STEPS, 1_000)
    (library, pipeline), _ = in_own_process(measure, steps)
    yield {
        "problems": PROBLEMS,
        "steps of each": steps,
        "library, CPU s": library,
        "pipeline, CPU s": pipeline,
        "ratio": f"{pipeline / library:.2f}",
        "at most": str(AT_MOST),
        "met": verdict(pipeline <= AT_MOST * library),
    }
