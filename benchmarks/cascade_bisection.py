"""CascadeKL-UCB as one would compile it at first: every bound by bisection, at every step.

What ``bubblerank.kernels.cascade_klucb`` is measured against; it shows the same lists.
"""

import math

import numpy as np
from numba import njit

from bubblerank.kernels.cascade_klucb import run_priorities
from bubblerank.kernels.coins import first_word
from bubblerank.kernels.kl import CELL, ONE, exploration_budget, negative_entropy
from bubblerank.kernels.ledger import is_pending, make_pending, settle
from bubblerank.kernels.world import draw_clicks
from bubblerank.rankers.cascade_klucb import NEVER_OBSERVED, CascadeState


@njit
def bisect(clicks, observations, budget):
    """The largest grid point q with T kl(W / T, q) <= budget."""
    if observations == 0:
        return NEVER_OBSERVED
    if clicks == observations:
        return ONE
    low, high = clicks * ONE // observations, ONE
    if budget <= 0.0:
        return low
    won, lost = np.float64(clicks), np.float64(observations - clicks)
    entropy = negative_entropy(won, lost)
    while high - low > 1:
        middle = (low + high) >> 1
        q = middle * CELL
        if entropy - won * math.log(q) - lost * math.log(1.0 - q) <= budget:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def advance(clicks, observations, priority, start, world, ledger, steps):
    """Rank, display, draw clicks and learn, ``steps`` times."""
    shown, items = world.click.shape
    order = np.arange(items)
    displayed = order[:shown]
    bounds = np.empty(items, dtype=np.int64)
    clicked = np.zeros(shown, dtype=np.int64)
    for step in range(start + 1, start + steps + 1):
        budget = exploration_budget(step)
        for item in range(items):
            bounds[item] = bisect(clicks[item], observations[item], budget)
        for begin in range(1, items):
            item, place = order[begin], begin
            while place > 0:
                other = order[place - 1]
                if bounds[other] > bounds[item] or (
                    bounds[other] == bounds[item] and priority[other] < priority[item]
                ):
                    break
                order[place] = other
                place -= 1
            order[place] = item
        user = first_word(world.click_key, step)
        ledger.counts[0] += draw_clicks(world.click, world.stop, user, displayed, clicked)
        if not is_pending(ledger.pending, displayed):
            make_pending(ledger, world, displayed)
        ledger.pending_count[0] += 1
        for position in range(shown):
            observations[displayed[position]] += 1
            if clicked[position]:
                clicks[displayed[position]] += 1
                break
    settle(ledger, world)


def advance_state(state, config, world, ledger, recorder, steps):
    """The state after ``steps`` more steps; neither rows nor displays."""
    clicks = np.array(state.clicks, dtype=np.int64)
    observations = np.array(state.observations, dtype=np.int64)
    priority = run_priorities(world.priority_key, clicks.size)
    advance(clicks, observations, priority, state.step, world, ledger, steps)
    return CascadeState(tuple(clicks.tolist()), tuple(observations.tolist()), state.step + steps)
