"""The bounds of ``bubblerank.kl``, compiled: Newton's method, then the exact grid point."""

import math

import numpy as np
from numba import njit

from bubblerank import kl

ONE = kl.ONE
CELL = 1.0 / ONE
_HALF_BITS = kl.GRID_BITS // 2
_ITERATIONS = 100


@njit(inline="always")
def exploration_budget(step):
    """log t + 3 log log t, and 0 where that is negative."""
    return math.log(step) + 3.0 * math.log(math.log(step)) if step > 2 else 0.0


@njit(inline="always")
def negative_entropy(clicks, misses):
    """W log(W / T) + (T - W) log((T - W) / T), where 0 log 0 = 0."""
    total = 0.0
    if clicks > 0.0:
        total += clicks * math.log(clicks / (clicks + misses))
    if misses > 0.0:
        total += misses * math.log(misses / (clicks + misses))
    return total


@njit(inline="always")
def divergence(entropy, clicks, misses, q):
    """T kl(W / T, q), in the very order of operations of the reference."""
    return entropy - clicks * math.log(q) - misses * math.log(1.0 - q)


@njit(inline="always")
def mean_on_grid(clicks, observations):
    """The grid point at or below W / T, by long division in two halves."""
    first = (clicks << _HALF_BITS) // observations
    rest = (clicks << _HALF_BITS) % observations
    return (first << _HALF_BITS) + (rest << _HALF_BITS) // observations


@njit
def root(entropy, clicks, misses, budget, guess):
    """q > p with T kl(p, q) = budget, nearly: Newton's method kept within a bracket."""
    low, high = clicks / (clicks + misses), 1.0
    mean = low
    q = guess if low < guess < high else 0.5 * (low + high)
    for _ in range(_ITERATIONS):
        excess = divergence(entropy, clicks, misses, q) - budget
        if excess > 0.0:
            high = q
        else:
            low = q
        following = q - excess / (misses / (1.0 - q) - clicks / q)
        if not low <= following <= high:
            following = 0.5 * (low + high)
        change = following - q
        q = following
        if change * change < 0.25 * CELL * (q - mean) * (1.0 - q) or high - low < CELL:
            break
    return q


@njit
def upper_bound(clicks, observations, budget, guess):
    """The largest grid point q with T kl(W / T, q) <= budget; ``guess`` is where to begin.

    From Newton's point, strides that double find a bracket, which is then halved: the usual
    case takes two looks, and no case takes many.
    """
    if clicks == observations:
        return ONE
    least = mean_on_grid(clicks, observations)
    if budget <= 0.0:
        return least
    won, lost = np.float64(clicks), np.float64(observations - clicks)
    entropy = negative_entropy(won, lost)
    point = int(root(entropy, won, lost, budget, guess) * ONE)
    low = max(least, min(point, ONE - 1))
    high = low + 1
    stride = 1
    while low > least and divergence(entropy, won, lost, low * CELL) > budget:
        high = low
        low = max(least, low - stride)
        stride *= 2
    stride = 1
    while high < ONE and divergence(entropy, won, lost, high * CELL) <= budget:
        low = high
        high = min(ONE, high + stride)
        stride *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if divergence(entropy, won, lost, middle * CELL) <= budget:
            low = middle
        else:
            high = middle
    return low


@njit
def lower_bound(clicks, observations, budget):
    """The smallest q with T kl(W / T, q) <= budget: 1 less the upper bound of no click."""
    if budget <= 0.0:
        return upper_bound(clicks, observations, budget, 0.0)
    return ONE - upper_bound(observations - clicks, observations, budget, 0.0)
