"""Every random draw as a function: a hash of (seed, query, run, purpose, step, index).

There is no generator and so no hidden state: whoever asks for the draw of a step gets the
same answer, in any order, on any machine, after any retry. The definition is part of the
file formats (an audit recomputes displays from it), so it never changes within a version:

    key    = first 8 bytes, little endian, of BLAKE2b over a tag, seed, run and the query
    word 0 = mix(mix(key + purpose * G) + step * G)
    word i = mix(word 0 + i * G)                                   for i >= 1

modulo 2^64, where mix is the finaliser of splitmix64 and G = 0x9E3779B97F4A7C15. A draw for
an index is 32 bits: the low half of word index // 2 for an even index, the high half for an
odd one. A coin for an index is bit index % 64 of word index // 64.

``bubblerank.kernels.coins`` holds the same functions compiled.
"""

import hashlib
import struct
from dataclasses import dataclass
from enum import IntEnum

GOLDEN = 0x9E3779B97F4A7C15
MIX_FIRST = 0xBF58476D1CE4E5B9
MIX_SECOND = 0x94D049BB133111EB
WORD_MASK = 0xFFFFFFFFFFFFFFFF
DRAW_MASK = 0xFFFFFFFF
DRAW_SCALE = 1 << 32

_TAG = b"bubblerank coins 1"


class Purpose(IntEnum):
    """What a draw is for; draws of different purposes are independent."""

    EXCHANGE = 1
    CHALLENGE = 2
    CLICK = 3
    SHUFFLE = 4
    PRIORITY = 5


def mix(word: int) -> int:
    """The finaliser of splitmix64: a bijection of 64-bit words.

    >>> hex(mix(0x9E3779B97F4A7C15))
    '0xe220a8397b1dcdaf'
    """
    word = ((word ^ (word >> 30)) * MIX_FIRST) & WORD_MASK
    word = ((word ^ (word >> 27)) * MIX_SECOND) & WORD_MASK
    return word ^ (word >> 31)


def stream_key(seed: int, query: str, run: int) -> int:
    """The 64-bit key of all draws of one query in one run."""
    if not -(1 << 63) <= seed < 1 << 63:
        raise ValueError(f"seed must fit into 64 signed bits, got {seed}: take a smaller one")
    content = _TAG + struct.pack("<qq", seed, run) + query.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def purpose_key(key: int, purpose: int) -> int:
    """The key of the draws of one purpose: the inner mix of word 0."""
    return mix((key + purpose * GOLDEN) & WORD_MASK)


@dataclass(frozen=True, slots=True)
class Coins:
    """The draws of one step of one query and run."""

    key: int
    step: int

    def word(self, purpose: Purpose, index: int) -> int:
        """64 fair bits."""
        first = mix((purpose_key(self.key, purpose) + self.step * GOLDEN) & WORD_MASK)
        return mix((first + index * GOLDEN) & WORD_MASK) if index else first

    def coin(self, purpose: Purpose, index: int) -> bool:
        """One fair bit."""
        return bool(self.word(purpose, index // 64) >> (index % 64) & 1)

    def draw(self, purpose: Purpose, index: int) -> int:
        """A uniform integer of 32 bits; ``draw / 2**32 < p`` happens with probability p."""
        word = self.word(purpose, index // 2)
        return word >> 32 if index % 2 else word & DRAW_MASK

    def pick(self, purpose: Purpose, count: int) -> int:
        """A uniform integer in [0, count), by multiplying a draw and keeping the high part."""
        return (self.draw(purpose, 0) * count) >> 32
