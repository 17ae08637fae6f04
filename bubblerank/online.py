"""Rankers to put inside one's own service: ``display()`` a list, ``observe(clicks)``, repeat.

>>> ranker = BubbleRank(["a", "b", "c"], query="shoes", horizon=1_000_000, seed=7)
>>> shown = ranker.display()
>>> sorted(shown)
['a', 'b', 'c']
>>> ranker.observe([True, False, False])
>>> ranker.step
1
"""

from collections.abc import Sequence
from typing import ClassVar, Self

from bubblerank import state_codec
from bubblerank.coins import Coins, stream_key
from bubblerank.config import RankerConfig
from bubblerank.rankers import policy
from bubblerank.rankers.policy import Policy, State


class OnlineRanker:
    """One query's ranker, one step at a time, over items of any names.

    ``display`` changes nothing and may be called again; ``observe`` takes the clicks on the
    list last displayed and makes the step. The same items, query, run, seed and clicks give
    the same lists, in this process or in any other.
    """

    name: ClassVar[str]

    def __init__(
        self,
        items: Sequence[str],
        *,
        query: str = "",
        run: int = 0,
        seed: int = 0,
        positions: int | None = None,
        horizon: int | None = None,
        delta: float | None = None,
        freeze_decided: bool = False,
    ) -> None:
        if len(set(items)) != len(items) or not items:
            raise ValueError(f"items must be distinct and at least one, got {list(items)}")
        self.items = tuple(items)
        self.config = RankerConfig(
            positions=positions, horizon=horizon, delta=delta, freeze_decided=freeze_decided
        )
        self._key = stream_key(seed, query, run)
        self._state: State = self._policy.start(len(self.items), self.config)

    @property
    def _policy(self) -> Policy:
        return policy(self.name)

    @property
    def step(self) -> int:
        """How many sessions have been consumed."""
        return int(self._state.step)

    @property
    def base(self) -> list[str]:
        """The list that the next display is made from."""
        state = self._policy.prepare(self._state, self.config)
        return [self.items[item] for item in self._policy.base_list(state)]

    def display(self) -> list[str]:
        """The list to show to the next user."""
        state = self._policy.prepare(self._state, self.config)
        choice = self._policy.decide(state, self.config, self._coins())
        return [self.items[item] for item in choice.displayed]

    def observe(self, clicks: Sequence[bool]) -> None:
        """Learn from the clicks on the displayed list, top first."""
        state = self._policy.prepare(self._state, self.config)
        choice = self._policy.decide(state, self.config, self._coins())
        if len(clicks) != len(choice.displayed):
            raise ValueError(
                f"clicks must be as many as displayed items, {len(choice.displayed)}, "
                f"got {len(clicks)}: one for each position, top first"
            )
        clicked = [bool(click) for click in clicks]
        self._state = self._policy.observe(state, self.config, choice, clicked, self._coins())

    def to_bytes(self) -> bytes:
        """The state, to be kept and given to ``restore`` of a ranker made alike."""
        return state_codec.encode(self.name, self._state)

    def restore(self, data: bytes) -> Self:
        """Go on from the state of ``to_bytes``."""
        name, state = state_codec.decode(data, self.config)
        if name != self.name:
            raise ValueError(f"the state is of {name}, this ranker is {self.name}")
        known = len(self._policy.base_list(state))
        if known != len(self.items):
            raise ValueError(f"the state is of {known} items, this ranker has {len(self.items)}")
        self._state = state
        return self

    def _coins(self) -> Coins:
        return Coins(self._key, self.step + 1)


class BubbleRank(OnlineRanker):
    """Safe re-ranking (Li et al., 2019): see ``bubblerank.rankers.bubble``."""

    name = "bubblerank"


class CascadeKLUCB(OnlineRanker):
    """CascadeKL-UCB (Kveton et al., 2015): see ``bubblerank.rankers.cascade_klucb``."""

    name = "cascade-klucb"


class BatchRank(OnlineRanker):
    """BatchRank (Zoghi et al., 2017): see ``bubblerank.rankers.batchrank``."""

    name = "batchrank"


class TopRank(OnlineRanker):
    """TopRank (Lattimore et al., 2018): see ``bubblerank.rankers.toprank``."""

    name = "toprank"


class Baseline(OnlineRanker):
    """The production list, always."""

    name = "baseline"
