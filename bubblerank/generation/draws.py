"""The draws of `bubblerank.coins` for many steps at once, with purposes of their own."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from bubblerank import coins

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

_GOLDEN = np.uint64(coins.GOLDEN)
_FIRST = np.uint64(coins.MIX_FIRST)
_SECOND = np.uint64(coins.MIX_SECOND)
_DRAW_BITS = np.uint64(11)


class Purpose(IntEnum):
    """What a draw is for; apart from the purposes of `bubblerank.coins`."""

    QUERY = 101
    VARIANT = 102
    CLICK = 103
    EXCHANGE = 104
    ARRIVAL = 105
    LATE = 106
    DUPLICATE = 107
    BROKEN = 108
    SCALE = 109
    NOISE = 110
    LIST = 111


def mix(words: Words) -> Words:
    """The finaliser of splitmix64."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def words(key: int, purpose: Purpose, steps: npt.NDArray[np.int64], index: int = 0) -> Words:
    """Word `index` of each step: what `Coins(key, step).word(purpose, index)` gives."""
    start = np.uint64(coins.purpose_key(key, purpose))
    first = mix(steps.astype(np.uint64) * _GOLDEN + start)
    offset = np.uint64((index * coins.GOLDEN) & coins.WORD_MASK)
    return mix(first + offset) if index else first


def uniforms(key: int, purpose: Purpose, steps: npt.NDArray[np.int64], index: int = 0) -> Floats:
    """A number in [0, 1) for each step, of 53 bits."""
    return (words(key, purpose, steps, index) >> _DRAW_BITS).astype(np.float64) * 2.0**-53
