"""The draws of ``bubblerank.coins``, compiled: the same words, bit for bit."""

import numpy as np
from numba import njit

from bubblerank import coins

GOLDEN = np.uint64(coins.GOLDEN)
_FIRST = np.uint64(coins.MIX_FIRST)
_SECOND = np.uint64(coins.MIX_SECOND)
_LOW = np.uint64(coins.DRAW_MASK)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_S27 = np.uint64(27)
_S30 = np.uint64(30)
_S31 = np.uint64(31)
_S32 = np.uint64(32)
_S63 = np.uint64(63)
_S6 = np.uint64(6)


@njit(inline="always")
def mix(word):
    """The finaliser of splitmix64."""
    word = (word ^ (word >> _S30)) * _FIRST
    word = (word ^ (word >> _S27)) * _SECOND
    return word ^ (word >> _S31)


@njit(inline="always")
def first_word(purpose_key, step):
    """Word 0 of a step, from the key of a purpose."""
    return mix(purpose_key + np.uint64(step) * GOLDEN)


@njit(inline="always")
def word(first, index):
    """Word ``index`` of a step, from its word 0."""
    if index == _ZERO:
        return first
    return mix(first + index * GOLDEN)


@njit(inline="always")
def coin(first, index):
    """Bit ``index`` of a step: True or False with equal probability."""
    position = np.uint64(index)
    return (word(first, position >> _S6) >> (position & _S63)) & _ONE != _ZERO


@njit(inline="always")
def draw(first, index):
    """The 32-bit draw for ``index`` in a step."""
    position = np.uint64(index)
    return (word(first, position >> _ONE) >> ((position & _ONE) * _S32)) & _LOW


@njit(inline="always")
def pick(first, count):
    """A uniform integer in [0, count)."""
    return np.int64((draw(first, 0) * np.uint64(count)) >> _S32)
