"""Confidence bounds of a click probability by the Kullback-Leibler divergence (KL-UCB).

After W clicks in T observations, p = W / T, the upper bound is the largest q in [p, 1] with
T kl(p, q) <= budget (Garivier and Cappe 2011; Kveton et al. 2015 rank by it, Zoghi et al.
2017 also use the lower bound). Bounds are integers: multiples of 2^-36, a grid coarse enough
that the computed divergence grows strictly from one point to the next up to T = 10^11. So
the bound does not depend on how it is searched for, and equal (W, T) give equal bounds.
"""

import math

GRID_BITS = 36
ONE = 1 << GRID_BITS
"""The probability 1 on the grid."""


def exploration_budget(step: int) -> float:
    """log t + 3 log log t, and 0 where that is negative (t = 1 and t = 2)."""
    return math.log(step) + 3.0 * math.log(math.log(step)) if step > 2 else 0.0


def negative_entropy(clicks: int, misses: int) -> float:
    """W log(W / T) + (T - W) log((T - W) / T), where 0 log 0 = 0."""
    total = 0.0
    if clicks:
        total += clicks * math.log(clicks / (clicks + misses))
    if misses:
        total += misses * math.log(misses / (clicks + misses))
    return total


def upper_bound(clicks: int, observations: int, budget: float) -> int:
    """The largest grid point q with T kl(W / T, q) <= budget, by bisection; 1 where W = T."""
    misses = observations - clicks
    if misses == 0:
        return ONE
    low, high = (clicks << GRID_BITS) // observations, ONE
    if budget <= 0.0:
        return low
    entropy = negative_entropy(clicks, misses)
    while high - low > 1:
        middle = (low + high) // 2
        q = middle / ONE
        if entropy - clicks * math.log(q) - misses * math.log(1.0 - q) <= budget:
            low = middle
        else:
            high = middle
    return low


def lower_bound(clicks: int, observations: int, budget: float) -> int:
    """The smallest q with T kl(W / T, q) <= budget: 1 less the upper bound of no click."""
    if budget <= 0.0:
        return upper_bound(clicks, observations, budget)
    return ONE - upper_bound(observations - clicks, observations, budget)
