"""CascadeKL-UCB (Kveton et al., "Cascading Bandits", ICML 2015), readable.

Items are ranked by the KL upper bound of their attraction, with the budget log t + 3 log log t
at step t. An item that was never observed has an infinite bound. Ties, and the items not yet
observed, are ordered by one random priority per item and run: never by index, which would
favour the production list.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bubblerank.coins import Coins, Purpose
from bubblerank.config import RankerConfig
from bubblerank.kl import ONE, exploration_budget, upper_bound
from bubblerank.rankers.policy import Choice, check_extent

NEVER_OBSERVED = 2 * ONE
"""The bound of an item that was never observed: above every probability."""


@dataclass(frozen=True)
class CascadeState:
    """W and T of each item: its clicks, and how often the user looked at it."""

    clicks: tuple[int, ...]
    observations: tuple[int, ...]
    step: int


def start(items: int, config: RankerConfig) -> CascadeState:
    """Nothing observed yet."""
    config.shown(items)
    return CascadeState((0,) * items, (0,) * items, 0)


def prepare(state: CascadeState, config: RankerConfig) -> CascadeState:
    """Nothing to prepare."""
    return state


def upper_bounds(state: CascadeState) -> list[int]:
    """U(i) at the next step, in grid points."""
    budget = exploration_budget(state.step + 1)
    return [
        upper_bound(clicks, observed, budget) if observed else NEVER_OBSERVED
        for clicks, observed in zip(state.clicks, state.observations, strict=True)
    ]


def decide(state: CascadeState, config: RankerConfig, coins: Coins) -> Choice:
    """The K items of the largest U(i), ties by the priorities of the run (its step 0)."""
    run = Coins(coins.key, 0)
    bounds = upper_bounds(state)
    order = sorted(
        range(len(bounds)), key=lambda item: (-bounds[item], run.word(Purpose.PRIORITY, item), item)
    )
    return Choice(tuple(order[: config.shown(len(bounds))]))


def observe(
    state: CascadeState,
    config: RankerConfig,
    choice: Choice,
    clicks: Sequence[bool],
    coins: Coins,
) -> CascadeState:
    """The items down to the first click were observed, all when there is none."""
    won, observed = list(state.clicks), list(state.observations)
    for item, click in zip(choice.displayed, clicks, strict=True):
        observed[item] += 1
        if click:
            won[item] += 1
            break
    return CascadeState(tuple(won), tuple(observed), state.step + 1)


def base_list(state: CascadeState) -> tuple[int, ...]:
    """R_0."""
    return tuple(range(len(state.clicks)))


def pack(state: CascadeState) -> list[int]:
    """Step, number of items, the clicks and the observations without a click of each item."""
    misses = [t - w for w, t in zip(state.clicks, state.observations, strict=True)]
    return [state.step, len(state.clicks), *state.clicks, *misses]


def unpack(numbers: Sequence[int], config: RankerConfig) -> CascadeState:
    """The state of ``pack``."""
    if len(numbers) < 2 or len(numbers) != 2 + 2 * numbers[1] or min(numbers) < 0:
        raise ValueError(
            f"no cascade-klucb state: {len(numbers)} numbers must be a step, an item count "
            "and clicks and misses of each item, none negative"
        )
    step, items = numbers[:2]
    check_extent("cascade-klucb", step, items)
    clicks, misses = numbers[2 : 2 + items], numbers[2 + items :]
    observations = tuple(w + m for w, m in zip(clicks, misses, strict=True))
    return CascadeState(tuple(clicks), observations, step)
