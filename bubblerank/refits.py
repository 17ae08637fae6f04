"""What a simulation would have said, had users clicked a little otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bubblerank.closed_loop import advance_compiled, begin
from bubblerank.config import RankerConfig
from bubblerank.metrics import make_yardstick
from bubblerank.simulation import make_experiment

if TYPE_CHECKING:
    from bubblerank.fitting.model import FittedModel
    from bubblerank.fitting.problems import FittedProblem

FloatArray = npt.NDArray[np.float64]


class Refits(NamedTuple):
    """By (refit, query): reward per session of BubbleRank and R_0, and NDCG at the end."""

    reward: FloatArray
    baseline: FloatArray
    ndcg: FloatArray
    baseline_ndcg: FloatArray


def simulate_refits(
    model: FittedModel,
    chosen: Sequence[FittedProblem],
    config: RankerConfig,
    steps: int,
    top: int,
    seed: int,
    refits: int,
) -> Refits:
    """Redraw the clicks of the log from the model, fit again, simulate again, `refits` times.

    Every simulation has the coins of run 0, so that refits differ by their fits alone.
    """
    from bubblerank.fitting.estimate import fit
    from bubblerank.fitting.problems import refitted_problem
    from bubblerank.fitting.redraw import redraw

    found = np.zeros((4, refits, len(chosen)))
    for number in range(refits):
        draw = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, number])
        again = fit(redraw(model, draw), model.click_model, model.prior)
        for place, fitted in enumerate(chosen):
            problem = refitted_problem(fitted, again)
            experiment = make_experiment(problem, "bubblerank", config, 0, seed, top)
            (row,) = advance_compiled(experiment, begin(experiment), steps, [steps]).checkpoints
            yardstick = make_yardstick(experiment.model, experiment.shown, top)
            production = range(experiment.shown)
            found[:, number, place] = (
                row.reward / steps,
                experiment.model.reward(production, top),
                row.ndcg,
                yardstick.ndcg(tuple(production)),
            )
    return Refits(*found)
