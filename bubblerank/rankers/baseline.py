"""The baseline of every comparison: always the production list R_0, never learning."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bubblerank.coins import Coins
from bubblerank.config import RankerConfig
from bubblerank.rankers.policy import Choice, check_extent


@dataclass(frozen=True)
class BaselineState:
    """How long the list is, and how many sessions have seen its top."""

    items: int
    step: int


def start(items: int, config: RankerConfig) -> BaselineState:
    """Before the first step."""
    config.shown(items)
    return BaselineState(items, 0)


def prepare(state: BaselineState, config: RankerConfig) -> BaselineState:
    """Nothing to prepare."""
    return state


def decide(state: BaselineState, config: RankerConfig, coins: Coins) -> Choice:
    """The first K items of R_0."""
    return Choice(tuple(range(config.shown(state.items))))


def observe(
    state: BaselineState,
    config: RankerConfig,
    choice: Choice,
    clicks: Sequence[bool],
    coins: Coins,
) -> BaselineState:
    """Count the session."""
    return replace(state, step=state.step + 1)


def base_list(state: BaselineState) -> tuple[int, ...]:
    """R_0."""
    return tuple(range(state.items))


def pack(state: BaselineState) -> list[int]:
    """Step and number of items."""
    return [state.step, state.items]


def unpack(numbers: Sequence[int], config: RankerConfig) -> BaselineState:
    """The state of ``pack``."""
    step, items = numbers
    check_extent("baseline", step, items)
    return BaselineState(items=items, step=step)
