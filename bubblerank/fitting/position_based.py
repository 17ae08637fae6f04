"""EM for the position-based model (Chuklin et al. 2015, section 4.2), on counts.

P(click on item i at position k) = chi(k) alpha(i): the likelihood depends only on how often each
item was shown and clicked at each position, so an iteration costs the same for any log length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bubblerank.fitting.model import FloatArray, Iteration
from bubblerank.fitting.observations import IntArray
from bubblerank.fitting.prior import Prior

DEFAULT_ITERATIONS = 1000
DEFAULT_TOLERANCE = 1e-7
"""EM has converged when an iteration gains less than this per impression, in nats."""

_TINY = 1e-300


class EmResult(NamedTuple):
    """Attraction by pair, examination by position, and what each iteration began with."""

    attraction: FloatArray
    examination: FloatArray
    iterations: tuple[Iteration, ...]
    converged: bool


def run_em(
    pair: IntArray,
    position: IntArray,
    shown: FloatArray,
    clicked: FloatArray,
    prior: Prior,
    iterations: int = DEFAULT_ITERATIONS,
    tolerance: float = DEFAULT_TOLERANCE,
) -> EmResult:
    """At most `iterations` EM steps from the prior's mean; rows are (pair, position) counts.

    The last entry of `iterations` is that of the parameters returned.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    pairs, positions = int(pair.max()) + 1, int(position.max()) + 1
    missed = shown - clicked
    shown_pair = np.bincount(pair, shown, pairs) + prior.views
    shown_position = np.bincount(position, shown, positions) + prior.views
    enough = tolerance * float(shown.sum())
    attraction = np.full(pairs, prior.mean)
    examination = np.full(positions, prior.mean)
    trace: list[Iteration] = []
    converged = False
    for _ in range(iterations):
        alpha, chi = attraction[pair], examination[position]
        click = alpha * chi
        trace.append(_iteration(clicked, missed, click, attraction, examination, prior))
        converged = len(trace) > 1 and trace[-1].objective - trace[-2].objective < enough
        if converged:
            break
        blame = missed / np.maximum(1.0 - click, _TINY)
        attractive = clicked + blame * (alpha - click)
        examined = clicked + blame * (chi - click)
        attraction = (np.bincount(pair, attractive, pairs) + prior.clicks) / shown_pair
        examination = (np.bincount(position, examined, positions) + prior.clicks) / shown_position
    else:
        click = attraction[pair] * examination[position]
        trace.append(_iteration(clicked, missed, click, attraction, examination, prior))
    return EmResult(attraction, examination, tuple(trace), converged)


def _iteration(
    clicked: FloatArray,
    missed: FloatArray,
    click: FloatArray,
    attraction: FloatArray,
    examination: FloatArray,
    prior: Prior,
) -> Iteration:
    likelihood = _weighted_log(clicked, click) + _weighted_log(missed, 1.0 - click)
    belief = 0.0
    if prior.views:
        for values in (attraction, examination):
            belief += prior.clicks * float(np.log(np.maximum(values, _TINY)).sum())
            belief += (prior.views - prior.clicks) * float(
                np.log(np.maximum(1.0 - values, _TINY)).sum()
            )
    return Iteration(likelihood, likelihood + belief)


def _weighted_log(weights: FloatArray, values: FloatArray) -> float:
    """The sum of w log x, where 0 log 0 is 0."""
    logs = np.log(np.maximum(values, _TINY))
    return float(np.dot(weights, np.where(weights > 0, logs, 0.0)))
