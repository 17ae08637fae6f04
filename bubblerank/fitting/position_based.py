"""EM for the position-based model (Chuklin et al. 2015, section 4.2), on counts.

P(click on item i at position k) = chi(k) alpha(i): the likelihood depends only on how often each
item was shown and clicked at each position, so an iteration costs the same for any log length.

Where lists hardly vary, the likelihood is almost flat along a valley and plain EM creeps: it can
gain nothing visible for thousands of iterations, far from the maximum. So by default every
second and third step are taken further along their direction (SQUAREM, Varadhan and Roland
2008, scheme S3), which is kept only where the objective is no worse than after the plain steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bubblerank.fitting.model import FloatArray, Iteration
from bubblerank.fitting.observations import IntArray
from bubblerank.fitting.prior import Prior

DEFAULT_ITERATIONS = 2000
DEFAULT_TOLERANCE = 1e-3
"""EM has converged when an iteration gains less than this, in nats, over the whole log."""

_TINY = 1e-300
_EDGE = 1e-9


class EmResult(NamedTuple):
    """Attraction by pair, examination by position, and what each iteration began with."""

    attraction: FloatArray
    examination: FloatArray
    iterations: tuple[Iteration, ...]
    converged: bool


class Counts(NamedTuple):
    """By (pair, position): how often shown, clicked."""

    pair: IntArray
    position: IntArray
    shown: FloatArray
    clicked: FloatArray


class _Em:
    """The EM map on one vector: attractions, then examinations."""

    def __init__(self, counts: Counts, prior: Prior) -> None:
        self._pair, self._position = counts.pair, counts.position
        self._clicked, self._missed = counts.clicked, counts.shown - counts.clicked
        self._prior = prior
        self.pairs = int(counts.pair.max()) + 1
        self._positions = int(counts.position.max()) + 1
        self._views = prior.views + np.concatenate(
            [
                np.bincount(self._pair, counts.shown, self.pairs),
                np.bincount(self._position, counts.shown, self._positions),
            ]
        )

    def start(self) -> FloatArray:
        return np.full(self.pairs + self._positions, self._prior.mean)

    def step(self, theta: FloatArray) -> FloatArray:
        """One iteration: who was attractive, what was examined; then their shares."""
        alpha = theta[: self.pairs][self._pair]
        chi = theta[self.pairs :][self._position]
        click = alpha * chi
        blame = self._missed / np.maximum(1.0 - click, _TINY)
        attractive = np.bincount(self._pair, self._clicked + blame * (alpha - click), self.pairs)
        examined = np.bincount(
            self._position, self._clicked + blame * (chi - click), self._positions
        )
        total: FloatArray = np.concatenate([attractive, examined]) + self._prior.clicks
        return total / self._views

    def judge(self, theta: FloatArray) -> Iteration:
        """The log-likelihood, and with the prior."""
        click = theta[: self.pairs][self._pair] * theta[self.pairs :][self._position]
        likelihood = _weighted_log(self._clicked, click) + _weighted_log(self._missed, 1.0 - click)
        belief = 0.0
        if self._prior.views:
            misses = self._prior.views - self._prior.clicks
            belief += self._prior.clicks * float(np.log(np.maximum(theta, _TINY)).sum())
            belief += misses * float(np.log(np.maximum(1.0 - theta, _TINY)).sum())
        return Iteration(likelihood, likelihood + belief)


def run_em(
    counts: Counts,
    prior: Prior,
    iterations: int = DEFAULT_ITERATIONS,
    tolerance: float = DEFAULT_TOLERANCE,
    plain: bool = False,
) -> EmResult:
    """At most `iterations` EM steps from the prior's mean; `plain` ones are never taken further.

    The last entry of `iterations` is that of the parameters returned.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    em = _Em(counts, prior)
    theta = em.start()
    trace = [em.judge(theta)]
    converged = False
    while not converged and len(trace) <= iterations:
        before = trace[-1].objective
        once = em.step(theta)
        trace.append(em.judge(once))
        converged = trace[-1].objective - before < tolerance
        if plain or converged or len(trace) > iterations:
            theta = once
            continue
        twice = em.step(once)
        further = _extrapolate(theta, once, twice)
        judged, judged_further = em.judge(twice), em.judge(further)
        better = judged_further.objective >= judged.objective
        theta = further if better else twice
        trace.append(judged_further if better else judged)
    return EmResult(theta[: em.pairs], theta[em.pairs :], tuple(trace), converged)


def _extrapolate(theta: FloatArray, once: FloatArray, twice: FloatArray) -> FloatArray:
    """Along the first step and its bend, as far as their lengths suggest; inside (0, 1)."""
    first = once - theta
    bend = twice - once - first
    length = float(np.sqrt(np.dot(bend, bend)))
    if length == 0.0:
        return twice
    reach = max(1.0, float(np.sqrt(np.dot(first, first))) / length)
    return np.clip(theta + 2.0 * reach * first + reach * reach * bend, _EDGE, 1.0 - _EDGE)


def _weighted_log(weights: FloatArray, values: FloatArray) -> float:
    """The sum of w log x, where 0 log 0 is 0."""
    logs = np.log(np.maximum(values, _TINY))
    return float(np.dot(weights, np.where(weights > 0, logs, 0.0)))
