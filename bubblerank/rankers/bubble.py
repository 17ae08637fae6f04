"""BubbleRank (Li et al., UAI 2019), readable: a state and pure functions over it.

Line numbers are those of Algorithm 1 in the paper. Items are indexes into the initial list
R_0 = (0, 1, ..., L - 1), positions count from 0, and K of the L items are shown. ``wins`` is
the paper's s and ``trials`` its n. One step is

    state = prepare(state, config)
    choice = decide(state, config, coins)
    state = promote(learn(state, config, choice, clicks), config)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bubblerank.coins import Coins, Purpose
from bubblerank.config import RankerConfig
from bubblerank.rankers.policy import MAX_STEP, Choice, check_extent


@dataclass(frozen=True, eq=False)
class BubbleState:
    """What BubbleRank knows of one query after ``step`` sessions."""

    base: tuple[int, ...]
    wins: npt.NDArray[np.int64]
    trials: npt.NDArray[np.int64]
    step: int
    horizon: int


def start(items: int, config: RankerConfig) -> BubbleState:
    """Lines 1-3: no statistics yet, and the production list as the base list."""
    config.shown(items)
    zeros = np.zeros((items, items), dtype=np.int64)
    return BubbleState(tuple(range(items)), zeros, zeros, 0, config.start_horizon)


def beats(wins: int, trials: int, log_inverse_delta: float) -> bool:
    """Whether s > 2 sqrt(n log(1 / delta)), squared so that no rounding of a root decides."""
    return wins > 0 and float(wins * wins) > 4.0 * log_inverse_delta * float(trials)


def item_beats(state: BubbleState, config: RankerConfig, first: int, second: int) -> bool:
    """Whether the clicks have settled that ``first`` is more attractive than ``second``."""
    return beats(
        int(state.wins[first, second]),
        int(state.trials[first, second]),
        config.log_inverse_delta(state.horizon),
    )


def upper_positions(step: int, shown: int) -> range:
    """Lines 5 and 7-8: the upper positions of the pairs of a step's parity, h = t mod 2."""
    return range(step % 2, shown - 1, 2)


def challenges_last(step: int, shown: int, items: int) -> bool:
    """Whether the last position is in no pair of this step, so that hidden items challenge it."""
    return items > shown and (shown - step % 2) % 2 == 1


def prepare(state: BubbleState, config: RankerConfig) -> BubbleState:
    """The doubling trick, before the next step: past the horizon, double it and restart from R_0.

    The statistics are kept, and steps and parity go on.
    """
    horizon = state.horizon
    while config.doubling and state.step + 1 > horizon:
        horizon *= 2
    if horizon == state.horizon:
        return state
    return replace(state, base=tuple(range(len(state.base))), horizon=horizon)


def challenger(state: BubbleState, config: RankerConfig, coins: Coins) -> int | None:
    """The hidden item that stands against the last position in this step, if any.

    Uniform among the hidden items that the item at position K does not beat.
    """
    shown = config.shown(len(state.base))
    if not challenges_last(state.step + 1, shown, len(state.base)):
        return None
    last = state.base[shown - 1]
    open_items = [item for item in state.base[shown:] if not item_beats(state, config, last, item)]
    return open_items[coins.pick(Purpose.CHALLENGE, len(open_items))] if open_items else None


def decide(state: BubbleState, config: RankerConfig, coins: Coins) -> Choice:
    """Lines 5-13: exchange, by coins, the neighbours whose upper item does not beat the lower."""
    shown = config.shown(len(state.base))
    displayed = list(state.base[:shown])
    for pair, upper in enumerate(upper_positions(state.step + 1, shown)):
        above, below = displayed[upper], displayed[upper + 1]
        if not item_beats(state, config, above, below) and coins.coin(Purpose.EXCHANGE, pair):
            displayed[upper], displayed[upper + 1] = below, above
    hidden = challenger(state, config, coins)
    if hidden is not None and coins.coin(Purpose.CHALLENGE, 32):
        displayed[-1], hidden = hidden, displayed[-1]
    return Choice(tuple(displayed), hidden)


def learn(
    state: BubbleState, config: RankerConfig, choice: Choice, clicks: Sequence[bool]
) -> BubbleState:
    """Lines 15-22: where exactly one item of a pair of this step's parity was clicked, it wins.

    A hidden item is never clicked.
    """
    step = state.step + 1
    displayed = choice.displayed
    pairs = [
        (displayed[upper], displayed[upper + 1], int(clicks[upper]) - int(clicks[upper + 1]))
        for upper in upper_positions(step, len(displayed))
    ]
    if choice.hidden is not None:
        pairs.append((displayed[-1], choice.hidden, int(clicks[-1])))
    wins, trials = state.wins.copy(), state.trials.copy()
    for above, below, difference in pairs:
        decided = item_beats(state, config, above, below) or item_beats(state, config, below, above)
        if difference == 0 or (config.freeze_decided and decided):
            continue
        wins[above, below] += difference
        wins[below, above] -= difference
        trials[above, below] += 1
        trials[below, above] += 1
    return replace(state, wins=wins, trials=trials, step=step)


def promote(state: BubbleState, config: RankerConfig) -> BubbleState:
    """Lines 24-28: one pass down the base list; an item passes the upper neighbour it beats.

    Then hidden items, in their order, take the last shown place from an item that they beat.
    """
    shown = config.shown(len(state.base))
    base = list(state.base)
    for upper in range(shown - 1):
        if item_beats(state, config, base[upper + 1], base[upper]):
            base[upper], base[upper + 1] = base[upper + 1], base[upper]
    for place in range(shown, len(base)):
        if item_beats(state, config, base[place], base[shown - 1]):
            base[shown - 1], base[place] = base[place], base[shown - 1]
    return replace(state, base=tuple(base))


def observe(
    state: BubbleState,
    config: RankerConfig,
    choice: Choice,
    clicks: Sequence[bool],
    coins: Coins,
) -> BubbleState:
    """Lines 15-28: learn from the clicks, then mend the base list."""
    return promote(learn(state, config, choice, clicks), config)


def base_list(state: BubbleState) -> tuple[int, ...]:
    """The base list, hidden items last."""
    return state.base


@lru_cache(maxsize=64)
def upper_pairs(items: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All pairs i < j in row order; read-only, made once for each number of items."""
    uppers, lowers = np.triu_indices(items, 1)
    uppers.flags.writeable = lowers.flags.writeable = False
    return uppers, lowers


def pack(state: BubbleState) -> list[int]:
    """Step, horizon, base list, then (gap, won, lost) of the touched pairs i < j in row order."""
    items = len(state.base)
    uppers, lowers = upper_pairs(items)
    trials = state.trials[uppers, lowers]
    touched = np.flatnonzero(trials)
    trials, wins = trials[touched], state.wins[uppers[touched], lowers[touched]]
    triples = np.empty((len(touched), 3), dtype=np.int64)
    triples[:, 0] = touched
    triples[1:, 0] -= touched[:-1] + 1
    triples[:, 1] = (trials + wins) // 2
    triples[:, 2] = trials - triples[:, 1]
    numbers = triples.reshape(-1).tolist()
    return [state.step, state.horizon, items, *state.base, len(touched), *numbers]


def unpack(numbers: Sequence[int], config: RankerConfig) -> BubbleState:
    """The state of ``pack``."""
    step, horizon, items = numbers[:3]
    check_extent("bubblerank", step, items)
    base = tuple(numbers[3 : 3 + items])
    if sorted(base) != list(range(items)) or not 0 <= horizon <= MAX_STEP:
        raise ValueError(f"no bubblerank state: base list {base}, horizon {horizon}")
    pairs = np.array(numbers[4 + items :], dtype=np.int64).reshape(-1, 3)
    if len(pairs) != numbers[3 + items] or (pairs < 0).any():
        raise ValueError(f"no bubblerank state: {numbers[3 + items]} pairs announced")
    if (pairs > [items * items, step, step]).any():
        raise ValueError(f"no bubblerank state: a pair met more often than in {step} steps")
    places = np.cumsum(pairs[:, 0] + 1) - 1
    uppers, lowers = (index[places] for index in upper_pairs(items))
    wins, trials = np.zeros((2, items, items), dtype=np.int64)
    wins[uppers, lowers] = pairs[:, 1] - pairs[:, 2]
    wins[lowers, uppers] = -wins[uppers, lowers]
    trials[uppers, lowers] = trials[lowers, uppers] = pairs[:, 1] + pairs[:, 2]
    return BubbleState(base, wins, trials, step, horizon)
