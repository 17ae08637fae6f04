"""The world that compiled rankers meet: a click model and its yardstick as plain tables."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bubblerank.coins import DRAW_SCALE, Purpose, purpose_key
from bubblerank.kernels.coins import draw
from bubblerank.metrics import Yardstick

Draws = npt.NDArray[np.uint64]
Reals = npt.NDArray[np.float64]


class World(NamedTuple):
    """One problem, run and seed. Tables are indexed [position, item].

    click, stop: a 32-bit draw below them is a click, and one after which the user leaves.
    gain: what an item adds to the expected reward of a top position: its click probability
        where clicks are counted, else its stop probability.
    """

    exchange_key: np.uint64
    challenge_key: np.uint64
    click_key: np.uint64
    shuffle_key: np.uint64
    priority_key: np.uint64
    click: Draws
    stop: Draws
    gain: Reals
    counts_clicks: bool
    attraction: Reals
    discount: Reals
    best_reward: float
    best_dcg: float
    twice_allowed_inversions: int


def make_world(yardstick: Yardstick, key: int) -> World:
    """The tables of a problem for the draws of one stream key."""
    model, shown = yardstick.model, yardstick.shown
    items = len(model.attraction)

    def table(probability: Callable[[int, int], float], positions: int) -> Reals:
        cells = [[probability(k, i) for i in range(items)] for k in range(positions)]
        return np.array(cells, dtype=np.float64).reshape(positions, items)

    gain = model.click_probability if model.counts_clicks else model.stop_probability
    keys = {purpose: np.uint64(purpose_key(key, purpose)) for purpose in Purpose}
    return World(
        exchange_key=keys[Purpose.EXCHANGE],
        challenge_key=keys[Purpose.CHALLENGE],
        click_key=keys[Purpose.CLICK],
        shuffle_key=keys[Purpose.SHUFFLE],
        priority_key=keys[Purpose.PRIORITY],
        click=thresholds(table(model.click_probability, shown)),
        stop=thresholds(table(model.stop_probability, shown)),
        gain=table(gain, yardstick.top),
        counts_clicks=model.counts_clicks,
        attraction=np.array(model.attraction, dtype=np.float64),
        discount=np.array([math.log2(k + 2) for k in range(yardstick.top)], dtype=np.float64),
        best_reward=yardstick.best_reward,
        best_dcg=yardstick.best_dcg,
        twice_allowed_inversions=2 * yardstick.initial_inversions + shown,
    )


def thresholds(probabilities: Reals) -> Draws:
    """The integers x for which ``draw < x`` is exactly ``draw / 2**32 < p``."""
    return np.ceil(probabilities * DRAW_SCALE).astype(np.uint64)


@njit(inline="always")
def draw_clicks(click, stop, first, displayed, clicked):
    """One user's clicks on a list, into ``clicked``; their number is returned.

    Takes the tables by themselves, and word 0 of the step's clicks: inside a loop, taking
    arrays out of a tuple costs more than the draws.
    """
    total = 0
    for position in range(displayed.size):
        clicked[position] = 0
    for position in range(displayed.size):
        item = displayed[position]
        chance = draw(first, item)
        if chance < click[position, item]:
            clicked[position] = 1
            total += 1
            if chance < stop[position, item]:
                break
    return total


@njit
def reward_of(world, displayed):
    """The expected reward of the top positions of a list."""
    top = world.gain.shape[0]
    if world.counts_clicks:
        total = 0.0
        for position in range(top):
            total += world.gain[position, displayed[position]]
        return total
    unsatisfied = 1.0
    for position in range(top):
        unsatisfied *= 1.0 - world.gain[position, displayed[position]]
    return 1.0 - unsatisfied


@njit
def ndcg_of(world, displayed):
    """NDCG of the top positions of a list."""
    if world.best_dcg == 0.0:
        return 1.0
    total = 0.0
    for position in range(world.discount.size):
        total += world.attraction[displayed[position]] / world.discount[position]
    return total / world.best_dcg


@njit
def inversions_of(world, displayed):
    """The pairs of a list whose upper item is strictly less attractive than the lower."""
    count = 0
    for upper in range(displayed.size):
        attraction = world.attraction[displayed[upper]]
        for lower in range(upper + 1, displayed.size):
            if attraction < world.attraction[displayed[lower]]:
                count += 1
    return count
