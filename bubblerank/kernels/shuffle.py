"""Random orders of consecutive items, compiled: the shuffle priorities of a step."""

import numpy as np
from numba import njit

from bubblerank.kernels.coins import word


@njit(inline="always")
def shuffle_into(order, start, stop, first, keys, target):
    """Put the items ``order[start:stop]`` into ``target`` from ``start`` on, by priority.

    Each item's place is the number of items of a smaller priority: no branch to mispredict.
    Equal priorities (a chance of 2^-64) keep the order of ``order``; positions past the end
    of ``target`` are dropped.
    """
    for place in range(start, stop):
        keys[place] = word(first, np.uint64(order[place]))
    for place in range(start, stop):
        key = keys[place]
        rank = start
        for other in range(start, place):
            rank += keys[other] <= key
        for other in range(place + 1, stop):
            rank += keys[other] < key
        if rank < target.size:
            target[rank] = order[place]
