"""The metrics of lists that change at nearly every step, for rankers that shuffle.

The sums are those of ``bubblerank.kernels.ledger.add_steps``, digit for digit. Tables take
the divisions out of the loop, the arrays come one by one rather than within tuples, and the
sums stay apart until they are poured into the ledger.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bubblerank.metrics import FIXED_POINT

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

POUR_EVERY = 1 << 20
_SCALE = float(FIXED_POINT)
_BITS = 32
_MASK = (1 << _BITS) - 1
_U0, _U1, _U2, _U4, _U56 = (np.uint64(shift) for shift in (0, 1, 2, 4, 56))
_PAIRS, _FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_EIGHTS, _BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


class Tally(NamedTuple):
    """Tables by [position, item], and sums not yet in the ledger.

    factor: what an item adds to the expected clicks, or multiplies the chance of no
        satisfaction with. share: what it adds to the DCG.
    sums: high and low limbs of regret, reward and NDCG, then violations.
    better: see ``better_items``.
    """

    factor: Reals
    share: Reals
    better: npt.NDArray[np.uint64]
    sums: Ints


@njit
def make_tally(world):
    """The tables of a world, and nothing counted yet."""
    top, items = world.gain.shape
    factor, share = np.empty((top, items)), np.empty((top, items))
    for position in range(top):
        for item in range(items):
            gain = world.gain[position, item]
            factor[position, item] = gain if world.counts_clicks else 1.0 - gain
            share[position, item] = world.attraction[item] / world.discount[position]
    return Tally(factor, share, better_items(world.attraction), np.zeros(7, dtype=np.int64))


@njit(inline="always")
def reward_in(factor, counts_clicks, displayed):
    """The expected reward of the top positions."""
    if counts_clicks:
        total = 0.0
        for position in range(factor.shape[0]):
            total += factor[position, displayed[position]]
        return total
    unsatisfied = 1.0
    for position in range(factor.shape[0]):
        unsatisfied *= factor[position, displayed[position]]
    return 1.0 - unsatisfied


@njit(inline="always")
def ndcg_in(share, best_dcg, displayed):
    """NDCG of the top positions."""
    if best_dcg == 0.0:
        return 1.0
    total = 0.0
    for position in range(share.shape[0]):
        total += share[position, displayed[position]]
    return total / best_dcg


@njit
def better_items(attraction):
    """For each item the bits of those that are more attractive; none for more than 64 items."""
    items = attraction.size if attraction.size <= 64 else 0
    masks = np.zeros(items, dtype=np.uint64)
    for item in range(items):
        for other in range(items):
            if attraction[other] > attraction[item]:
                masks[item] |= _U1 << np.uint64(other)
    return masks


@njit(inline="always")
def count_bits(bits):
    """The number of ones, in the form that compilers know as one instruction."""
    bits -= (bits >> _U1) & _PAIRS
    bits = (bits & _FOURS) + ((bits >> _U2) & _FOURS)
    bits = (bits + (bits >> _U4)) & _EIGHTS
    return (bits * _BYTES) >> _U56


@njit(inline="always")
def inversions_in(attraction, better, displayed):
    """The pairs of a list whose upper item is strictly less attractive than the lower."""
    if better.size == 0:
        pairs = 0
        for lower in range(displayed.size):
            for upper in range(lower):
                pairs += attraction[displayed[upper]] < attraction[displayed[lower]]
        return pairs
    count = _U0
    below = _U0
    for position in range(displayed.size - 1, -1, -1):
        item = displayed[position]
        count += count_bits(below & better[item])
        below |= _U1 << np.uint64(item)
    return np.int64(count)


@njit(inline="always")
def add_limbs(sums, place, value, count):
    """Add ``count`` times a value, in units of 2^-52, without carrying."""
    fixed = np.int64(value * _SCALE)
    sums[place] += (fixed >> _BITS) * count
    sums[place + 1] += (fixed & _MASK) * count


@njit(inline="always")
def tally_list(
    factor,
    share,
    attraction,
    better,
    counts_clicks,
    best_reward,
    best_dcg,
    allowed,
    displayed,
    count,
    sums,
):
    """Add ``count`` steps in which this list was shown to the sums; with 0 it may be no list."""
    if count > 0:
        reward = reward_in(factor, counts_clicks, displayed)
        add_limbs(sums, 0, best_reward - reward, count)
        add_limbs(sums, 2, reward, count)
        add_limbs(sums, 4, ndcg_in(share, best_dcg, displayed), count)
        if 2 * inversions_in(attraction, better, displayed) > allowed:
            sums[6] += count


@njit(inline="always")
def await_list(pending, repeats, displayed):
    """Make a list the pending one, none of its steps counted yet."""
    for position in range(displayed.size):
        pending[position] = displayed[position]
    repeats[0] = 0


@njit
def pour(sums, totals, counts):
    """Move the sums into those of a ledger."""
    for total in range(3):
        low = totals[total, 1] + sums[2 * total + 1]
        totals[total, 0] += sums[2 * total] + (low >> _BITS)
        totals[total, 1] = low & _MASK
    counts[1] += sums[6]
    sums[:] = 0
