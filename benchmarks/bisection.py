"""CascadeKL-UCB as one would first write it for numba: every bound at every step by bisection.

Compiled like the project's own kernel, so that what is compared is the method. It searches as
finely (2^-36), shows the same lists and meets the same users; it sums no metrics.
"""

import math

import numpy as np
from numba import njit

from bubblerank.closed_loop import Experiment
from bubblerank.coins import stream_key
from bubblerank.kernels.cascade_klucb import run_priorities
from bubblerank.kernels.coins import first_word
from bubblerank.kernels.world import draw_clicks, make_world
from bubblerank.kl import ONE
from bubblerank.metrics import make_yardstick


@njit
def upper_bound(clicks, observations, budget):
    if observations == 0:
        return 2 * ONE
    misses = observations - clicks
    if misses == 0:
        return ONE
    low, high = np.int64(clicks / observations * ONE), ONE
    if budget <= 0.0:
        return low
    entropy = misses * math.log(misses / observations)
    if clicks:
        entropy += clicks * math.log(clicks / observations)
    while high - low > 1:
        middle = (low + high) // 2
        q = middle / ONE
        if entropy - clicks * math.log(q) - misses * math.log(1.0 - q) <= budget:
            low = middle
        else:
            high = middle
    return low


@njit
def sort_by_bound(order, bounds, priority):
    """Insertion: the order hardly changes from step to step."""
    for place in range(1, order.size):
        item = order[place]
        above = place - 1
        while above >= 0 and (
            bounds[order[above]] < bounds[item]
            or (bounds[order[above]] == bounds[item] and priority[order[above]] > priority[item])
        ):
            order[above + 1] = order[above]
            above -= 1
        order[above + 1] = item


@njit
def steps_by_bisection(click, stop, click_key, priority, steps, clicks, observations):
    items, shown = priority.size, click.shape[0]
    order = np.arange(items)
    bounds = np.zeros(items, dtype=np.int64)
    clicked = np.zeros(shown, dtype=np.int64)
    for step in range(1, steps + 1):
        budget = math.log(step) + 3.0 * math.log(math.log(step)) if step > 2 else 0.0
        for item in range(items):
            bounds[item] = upper_bound(clicks[item], observations[item], budget)
        sort_by_bound(order, bounds, priority)
        draw_clicks(click, stop, first_word(click_key, step), order[:shown], clicked)
        for position in range(shown):
            observations[order[position]] += 1
            if clicked[position]:
                clicks[order[position]] += 1
                break


def learn(experiment: Experiment, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Clicks and observations of each item after so many steps."""
    yardstick = make_yardstick(experiment.model, experiment.shown, experiment.top)
    key = stream_key(experiment.seed, experiment.query, experiment.run)
    world = make_world(yardstick, key)
    priority = run_priorities(world.priority_key, experiment.items)
    clicks, observations = np.zeros((2, experiment.items), dtype=np.int64)
    steps_by_bisection(
        world.click, world.stop, world.click_key, priority, steps, clicks, observations
    )
    return clicks, observations
