"""Simulations without a stream: rankers, problems and runs in, a table of metrics out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import schemas
from bubblerank.click_models import make_click_model
from bubblerank.closed_loop import Experiment, advance_compiled, advance_reference, begin
from bubblerank.config import RankerConfig
from bubblerank.metrics import Checkpoint, log_spaced
from bubblerank.problems import Problem

if TYPE_CHECKING:
    import pyarrow

PATHS = {"compiled": advance_compiled, "reference": advance_reference}


def make_experiment(
    problem: Problem, ranker: str, config: RankerConfig, run: int, seed: int, top: int
) -> Experiment:
    """The trajectory of a ranker on a problem; K is the config's, else the problem's."""
    model = make_click_model(
        problem.click_model, problem.attraction, problem.abandonment, problem.examination
    )
    if config.positions is None and problem.positions != len(problem.items):
        config = config.with_positions(problem.positions)
    return Experiment(ranker, problem.query, model, config, run, seed, top)


def metric_row(experiment: Experiment, row: Checkpoint) -> dict[str, object]:
    """A checkpoint as a record of the metric schema."""
    return {
        "ranker": experiment.ranker,
        "click_model": experiment.model.name,
        "query": experiment.query,
        "run": experiment.run,
        "step": row.step,
        "regret": row.regret,
        "reward": row.reward,
        "clicks": row.clicks,
        "violations": row.violations,
        "ndcg": row.ndcg,
        "mean_ndcg": row.mean_ndcg,
        "inversions": row.inversions,
    }


def simulate(
    problems: Iterable[Problem],
    rankers: Sequence[str] = ("bubblerank",),
    steps: int = 100_000,
    runs: int = 1,
    seed: int = 0,
    *,
    checkpoints: int | Sequence[int] = 50,
    horizon: int | None = None,
    positions: int | None = None,
    top: int = 5,
    delta: float | None = None,
    freeze_decided: bool = False,
    doubling: bool = False,
    path: str = "compiled",
) -> pyarrow.Table:
    """Run every ranker on every problem, ``runs`` times, and give the metrics as an Arrow table.

    One row for each (ranker, problem, run, checkpoint); checkpoints are log-spaced, or the
    steps given. The horizon is the number of steps unless given, or unknown with ``doubling``.
    ``path="reference"`` takes the readable functions instead of the compiled ones: the same
    rows, some hundred times slower.
    """
    import pyarrow as pa

    if path not in PATHS:
        raise ValueError(f"path must be one of {', '.join(PATHS)}, got {path!r}")
    if runs < 1:
        raise ValueError(f"runs must be at least 1, got {runs}: each is a trajectory of its own")
    due = log_spaced(steps, checkpoints) if isinstance(checkpoints, int) else list(checkpoints)
    config = RankerConfig(
        positions=positions,
        horizon=None if doubling else steps if horizon is None else horizon,
        delta=delta,
        freeze_decided=freeze_decided,
    )

    def rows() -> Iterator[dict[str, object]]:
        for problem in problems:
            for ranker in rankers:
                for run in range(runs):
                    experiment = make_experiment(problem, ranker, config, run, seed, top)
                    advance = PATHS[path](experiment, begin(experiment), steps, due)
                    yield from (metric_row(experiment, row) for row in advance.checkpoints)

    return pa.Table.from_pylist(list(rows()), schema=schemas.arrow_schema("metric"))
