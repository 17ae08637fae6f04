"""TopRank (Lattimore et al., "TopRank: A practical algorithm for online stochastic ranking",
NeurIPS 2018), readable.

``wins`` is the paper's S and ``trials`` its N: over the steps in which items i and j were in
the same block, S(i, j) sums c(i) - c(j) and N(i, j) counts the steps where they differ; an
item that is not shown has no click. Item j is known to be below item i once

    S(i, j) >= sqrt(2 N(i, j) log(c sqrt(N(i, j)) / delta)),   N(i, j) > 0,

with c = 4 sqrt(2 / pi) / erf(sqrt 2) and delta = 1 / n, and this is never forgotten.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bubblerank.coins import Coins, Purpose
from bubblerank.config import RankerConfig
from bubblerank.rankers.policy import Choice, check_extent

CONFIDENCE = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))
"""The paper's c."""


@dataclass(frozen=True, eq=False)
class TopState:
    """What TopRank knows of one query; ``below[j, i]`` where j is known to be below i."""

    wins: npt.NDArray[np.int64]
    trials: npt.NDArray[np.int64]
    below: npt.NDArray[np.bool_]
    step: int


def confidence_level(config: RankerConfig) -> float:
    """log(c / delta) for delta = 1 / n."""
    return math.log(CONFIDENCE * config.known_horizon("toprank"))


def start(items: int, config: RankerConfig) -> TopState:
    """No statistics, and no item known to be below another."""
    config.shown(items)
    confidence_level(config)
    zeros = np.zeros((items, items), dtype=np.int64)
    return TopState(zeros, zeros, zeros > 0, 0)


def is_settled(wins: int, trials: int, level: float) -> bool:
    """The test above, squared so that no rounding of a root decides."""
    if wins <= 0:
        return False
    return float(wins * wins) >= 2.0 * trials * (level + 0.5 * math.log(trials))


def blocks(state: TopState) -> list[list[int]]:
    """Repeatedly the items that no item left is known to beat, each block in item order.

    Should the relation have a cycle (probability at most delta L^2), so that every item
    left is below another one, then all of them make the last block.
    """
    left = list(range(len(state.wins)))
    found = []
    while left:
        block = [j for j in left if not any(state.below[j, i] for i in left)] or left
        found.append(block)
        left = [item for item in left if item not in block]
    return found


def prepare(state: TopState, config: RankerConfig) -> TopState:
    """Nothing to prepare."""
    return state


def decide(state: TopState, config: RankerConfig, coins: Coins) -> Choice:
    """Block after block, each in a uniformly random order; the first K items are shown."""
    order: list[int] = []
    for block in blocks(state):
        order += sorted(block, key=lambda item: (coins.word(Purpose.SHUFFLE, item), item))
    return Choice(tuple(order[: config.shown(len(state.wins))]))


def observe(
    state: TopState,
    config: RankerConfig,
    choice: Choice,
    clicks: Sequence[bool],
    coins: Coins,
) -> TopState:
    """Add c(i) - c(j) of the pairs within each block, then what is known by now."""
    wins, trials, below = state.wins.copy(), state.trials.copy(), state.below.copy()
    level = confidence_level(config)
    clicked = {item for item, click in zip(choice.displayed, clicks, strict=True) if click}
    for block in blocks(state):
        for i in block:
            for j in block:
                if i not in clicked or j in clicked:
                    continue
                wins[i, j] += 1
                wins[j, i] -= 1
                trials[i, j] += 1
                trials[j, i] += 1
                if is_settled(int(wins[i, j]), int(trials[i, j]), level):
                    below[j, i] = True
    return TopState(wins, trials, below, state.step + 1)


def base_list(state: TopState) -> tuple[int, ...]:
    """R_0."""
    return tuple(range(len(state.wins)))


def pack(state: TopState) -> list[int]:
    """Step, items, touched pairs, then of each i < j (gap and relation, won, lost).

    The gap to the touched pair before is multiplied by 4; 1 is added where j is below i, and
    2 where i is below j.
    """
    items = len(state.wins)
    uppers, lowers = np.triu_indices(items, 1)
    trials, wins = state.trials[uppers, lowers], state.wins[uppers, lowers]
    relation = state.below[lowers, uppers] + 2 * state.below[uppers, lowers]
    touched = np.flatnonzero(trials)
    won = (trials[touched] + wins[touched]) // 2
    gaps = np.diff(touched, prepend=-1) - 1
    triples = np.column_stack([4 * gaps + relation[touched], won, trials[touched] - won])
    return [state.step, items, len(touched), *triples.reshape(-1).tolist()]


def unpack(numbers: Sequence[int], config: RankerConfig) -> TopState:
    """The state of ``pack``."""
    if len(numbers) < 3 or len(numbers) != 3 + 3 * numbers[2] or min(numbers) < 0:
        raise ValueError(
            f"no toprank state: {len(numbers)} numbers must be a step, an item count, a pair "
            "count and three numbers for each pair, none negative"
        )
    step, items, _ = numbers[:3]
    check_extent("toprank", step, items)
    codes, won, lost = np.array(numbers[3:], dtype=np.int64).reshape(-1, 3).T
    if (codes > 4 * items * items).any() or max(won.max(initial=0), lost.max(initial=0)) > step:
        raise ValueError(f"no toprank state: a pair met more often than in {step} steps")
    places = np.cumsum(codes // 4 + 1) - 1
    if places.size and places[-1] >= items * (items - 1) // 2:
        raise ValueError(f"no toprank state: pair {places[-1]} of {items} items does not exist")
    uppers, lowers = (index[places] for index in np.triu_indices(items, 1))
    wins, trials = np.zeros((2, items, items), dtype=np.int64)
    wins[uppers, lowers], wins[lowers, uppers] = won - lost, lost - won
    trials[uppers, lowers] = trials[lowers, uppers] = won + lost
    below = np.zeros((items, items), dtype=np.bool_)
    below[lowers, uppers], below[uppers, lowers] = codes & 1 > 0, codes & 2 > 0
    return TopState(wins, trials, below, step)
