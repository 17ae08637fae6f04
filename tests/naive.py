"""Slow, obviously right versions of the core, transcribed from the paper and not from the library.

Items are 1 .. L, the initial list is R_0 = (1, ..., L), and positions, pairs and steps count
from 1, as in Algorithm 1 of Li et al. (UAI 2019). Coins come from their printed definition.
"""

import hashlib
import itertools
import math
from dataclasses import dataclass, field

GOLDEN = 0x9E3779B97F4A7C15
EXCHANGE, CHALLENGE, CLICK = 1, 2, 3


def splitmix64(seed, count):
    """The first outputs of splitmix64 (Steele, Lea and Flood, 2014), as its authors print it."""
    outputs = []
    state = seed
    for _ in range(count):
        state = (state + GOLDEN) % 2**64
        z = state
        z = (z ^ (z // 2**30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z // 2**27)) * 0x94D049BB133111EB % 2**64
        outputs.append(z ^ (z // 2**31))
    return outputs


def mix(word):
    return splitmix64((word - GOLDEN) % 2**64, 1)[0]


def key_of(seed, query, run):
    signed = [number % 2**64 for number in (seed, run)]
    text = b"bubblerank coins 1" + b"".join(n.to_bytes(8, "little") for n in signed)
    digest = hashlib.blake2b(text + query.encode(), digest_size=8).digest()
    return sum(byte * 256**place for place, byte in enumerate(digest))


def word(key, purpose, step, index):
    first = mix((mix((key + purpose * GOLDEN) % 2**64) + step * GOLDEN) % 2**64)
    return first if index == 0 else mix((first + index * GOLDEN) % 2**64)


def coin(key, purpose, step, index):
    return word(key, purpose, step, index // 64) // 2 ** (index % 64) % 2 == 1


def uniform(key, purpose, step, index):
    """A number in [0, 1): the half of a word that belongs to the index."""
    whole = word(key, purpose, step, index // 2)
    return (whole // 2**32 if index % 2 == 1 else whole % 2**32) / 2**32


@dataclass
class Users:
    """A click model: CM, DCM with v(k), PBM with chi(k); alpha by item."""

    model: str
    alpha: dict
    by_position: dict = field(default_factory=dict)

    def clicks(self, shown, draw):
        """Scan from the top; ``draw(item)`` is the user's uniform number for an item."""
        clicked = dict.fromkeys(range(1, len(shown) + 1), 0)
        for k, item in enumerate(shown, start=1):
            u = draw(item)
            if self.model == "PBM":
                clicked[k] = int(u < self.by_position[k] * self.alpha[item])
                continue
            if not u < self.alpha[item]:
                continue
            clicked[k] = 1
            if self.model == "CM" or u < self.by_position[k] * self.alpha[item]:
                break
        return clicked

    def outcomes(self, shown):
        """Every (probability, clicks, examined, satisfied) of a user, by enumerating events."""
        events = list(itertools.product([0, 1], repeat=2 * len(shown)))
        for event in events:
            attracted, second = event[: len(shown)], event[len(shown) :]
            probability, looking, satisfied = 1.0, True, False
            clicks, examined = [], []
            for k, item in enumerate(shown, start=1):
                a = self.alpha[item]
                b = 1.0 if self.model == "CM" else self.by_position[k]
                probability *= a if attracted[k - 1] else 1 - a
                probability *= b if second[k - 1] else 1 - b
                looks = bool(second[k - 1]) if self.model == "PBM" else looking
                click = bool(looks and attracted[k - 1])
                examined.append(looks)
                clicks.append(click)
                if self.model != "PBM" and click and second[k - 1]:
                    looking, satisfied = False, True
            if probability:
                yield probability, clicks, examined, satisfied


@dataclass
class BubbleRank:
    """Algorithm 1 with dictionaries and square roots; L > K and doubling as settled."""

    items: int
    shown: int
    horizon: int = 0
    delta: float | None = None
    doubling: bool = False
    freeze: bool = False
    promotions: int = 0

    def __post_init__(self):
        every = range(1, self.items + 1)
        self.s = {(i, j): 0 for i in every for j in every}
        self.n = {(i, j): 0 for i in every for j in every}
        self.base = list(every)

    def beats(self, i, j):
        log = -math.log(self.delta) if self.delta is not None else 4 * math.log(self.horizon)
        return self.s[i, j] > 2 * math.sqrt(self.n[i, j] * log)

    def step(self, t, key, users):
        """One step; gives the base list in force, the displayed list and the clicks."""
        K = self.shown
        while self.doubling and t > self.horizon:
            self.horizon *= 2
            self.base = list(range(1, self.items + 1))
        before = list(self.base)
        h = t % 2
        R = {k: self.base[k - 1] for k in range(1, K + 1)}
        for k in range(1, (K - h) // 2 + 1):
            i, j = R[2 * k - 1 + h], R[2 * k + h]
            if not self.beats(i, j) and coin(key, EXCHANGE, t, k - 1):
                R[2 * k - 1 + h], R[2 * k + h] = j, i
        hidden = None
        if self.items > K and (K - h) % 2 == 1:
            candidates = [j for j in self.base[K:] if not self.beats(R[K], j)]
            if candidates:
                place = int(uniform(key, CHALLENGE, t, 0) * len(candidates))
                hidden = candidates[place]
                if coin(key, CHALLENGE, t, 32):
                    R[K], hidden = hidden, R[K]

        shown = [R[k] for k in range(1, K + 1)]
        c = users.clicks(shown, lambda item: uniform(key, CLICK, t, item - 1))

        compared = [
            (R[2 * k - 1 + h], R[2 * k + h], c[2 * k - 1 + h], c[2 * k + h])
            for k in range(1, (K - h) // 2 + 1)
        ]
        if hidden is not None:
            compared.append((R[K], hidden, c[K], 0))
        updates = []
        for i, j, ci, cj in compared:
            if self.freeze and (self.beats(i, j) or self.beats(j, i)):
                continue
            if abs(ci - cj) == 1:
                updates.append((i, j, ci - cj))
        for i, j, won in updates:
            self.s[i, j] = self.s[i, j] + won
            self.n[i, j] = self.n[i, j] + 1
            self.s[j, i] = self.s[j, i] - won
            self.n[j, i] = self.n[j, i] + 1

        for k in range(1, K):
            i, j = self.base[k - 1], self.base[k]
            if self.beats(j, i):
                self.base[k - 1], self.base[k] = j, i
                self.promotions += 1
        for k in range(K + 1, self.items + 1):
            i, j = self.base[K - 1], self.base[k - 1]
            if self.beats(j, i):
                self.base[K - 1], self.base[k - 1] = j, i
                self.promotions += 1
        return before, shown, [c[k] for k in range(1, K + 1)]
