"""The settings that a ranker runs with, validated once and never changed."""

import math
from dataclasses import dataclass, replace

MAX_ITEMS = 1000
FIRST_HORIZON = 10_000


@dataclass(frozen=True)
class RankerConfig:
    """How a ranker shows and learns.

    positions: K, how many items are shown; None shows the whole list.
    horizon: the paper's n. BubbleRank takes delta = n ** -4 from it and keeps it past n;
        None means that the horizon is unknown: the doubling trick.
    delta: a fixed delta in place of the horizon's, for BubbleRank alone.
    freeze_decided: learn only from pairs that are not yet decided.
    first_horizon: the first guess of the doubling trick.
    """

    positions: int | None = None
    horizon: int | None = None
    delta: float | None = None
    freeze_decided: bool = False
    first_horizon: int = FIRST_HORIZON

    def __post_init__(self) -> None:
        problems = [message for message in self._problems() if message]
        if problems:
            raise ValueError("; ".join(problems))

    def _problems(self) -> list[str]:
        found = []
        if self.positions is not None and not 1 <= self.positions <= MAX_ITEMS:
            found.append(
                f"positions must lie in [1, {MAX_ITEMS}], got {self.positions}: "
                "it is the number of items shown"
            )
        if self.horizon is not None and self.horizon < 1:
            found.append(f"horizon must be at least 1, got {self.horizon}: it counts sessions")
        if self.delta is not None and not 0.0 < self.delta < 1.0:
            found.append(f"delta must lie in (0, 1), got {self.delta}: the paper uses n ** -4")
        if self.first_horizon < 1:
            found.append(f"first_horizon must be at least 1, got {self.first_horizon}")
        return found

    @property
    def doubling(self) -> bool:
        """Whether the horizon is guessed and doubled."""
        return self.horizon is None and self.delta is None

    @property
    def start_horizon(self) -> int:
        """The horizon in force at step 1; 0 where a fixed delta makes it irrelevant."""
        if self.delta is not None:
            return 0
        return self.first_horizon if self.horizon is None else self.horizon

    def log_inverse_delta(self, horizon: int) -> float:
        """log(1 / delta) for the horizon in force."""
        return -math.log(self.delta) if self.delta is not None else 4.0 * math.log(horizon)

    def with_positions(self, positions: int) -> "RankerConfig":
        """The same settings for another K."""
        return replace(self, positions=positions)

    def shown(self, items: int) -> int:
        """K for a list of ``items`` items."""
        if self.positions is None:
            return items
        if self.positions > items:
            raise ValueError(
                f"positions must be at most the number of items, got {self.positions} positions "
                f"for {items} items: give a smaller --positions or longer lists"
            )
        return self.positions

    def known_horizon(self, ranker: str) -> int:
        """The horizon, for rankers that cannot do without."""
        if self.horizon is None:
            raise ValueError(f"{ranker} needs a horizon, got none: give the number of steps")
        return self.horizon
