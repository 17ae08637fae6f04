"""What every ranker is: a state and pure functions over it. A ranker is one module."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from bubblerank.coins import Coins
from bubblerank.config import MAX_ITEMS, RankerConfig

MAX_STEP = 1 << 62

State = Any
"""Each ranker's own frozen dataclass; all have ``step``, the number of sessions consumed."""


class Choice(NamedTuple):
    """A list to display, and the hidden item (if any) that stood against its last position."""

    displayed: tuple[int, ...]
    hidden: int | None = None


class Policy(Protocol):
    """The functions of a ranker's module. Items are indexes into the initial list R_0."""

    def start(self, items: int, config: RankerConfig) -> State:
        """The state before the first step, for a list of ``items`` items."""

    def prepare(self, state: State, config: RankerConfig) -> State:
        """What must happen before the next step, whatever is displayed in it."""

    def decide(self, state: State, config: RankerConfig, coins: Coins) -> Choice:
        """The list to display in the next step."""

    def observe(
        self,
        state: State,
        config: RankerConfig,
        choice: Choice,
        clicks: Sequence[bool],
        coins: Coins,
    ) -> State:
        """The state after the clicks on a displayed list."""

    def base_list(self, state: State) -> tuple[int, ...]:
        """The list around which the next display is made."""

    def pack(self, state: State) -> list[int]:
        """The state as integers, for the codec."""

    def unpack(self, numbers: Sequence[int], config: RankerConfig) -> State:
        """The state of ``pack``; ValueError where the integers make no state."""


def check_extent(ranker: str, step: int, items: int) -> None:
    """Refuse a decoded state of more steps or items than any ranker has."""
    if not (0 <= step <= MAX_STEP and 1 <= items <= MAX_ITEMS):
        raise ValueError(f"no {ranker} state: step {step} of a list of {items} items")
