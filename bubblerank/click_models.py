"""How users click on a list: the cascade, dependent click and position-based models.

Each model tells, for an item shown at a position, the probability of a click given that the
user looks there (``click_probability``) and of a click after which the user looks no further
(``stop_probability``). One uniform draw u per item and step decides both: the item is clicked
when u < click probability, and the user leaves when also u < stop probability. So all
rankers meet the same users, and the compiled path needs two tables per model and no more.
Positions and items count from 0; a list is a sequence of item indexes, top first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bubblerank.coins import DRAW_SCALE, Coins, Purpose


def probabilities(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """``values`` as a tuple of floats, each of which must lie in [0, 1]."""
    checked = tuple(float(value) for value in values)
    for place, value in enumerate(checked):
        if not (math.isfinite(value) and 0.0 <= value <= 1.0):
            raise ValueError(
                f"{name}[{place}] must lie in [0, 1], got {value}: it is a probability"
            )
    if not checked:
        raise ValueError(f"{name} must hold at least one probability, got none")
    return checked


@dataclass(frozen=True)
class ClickModel:
    """What the three models share: attraction per item, and users who scan from the top."""

    attraction: tuple[float, ...]

    name: ClassVar[str]
    counts_clicks: ClassVar[bool]
    """Whether the reward is the number of clicks, or the chance of a click that satisfies."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "attraction", probabilities("attraction", self.attraction))

    @property
    def positions(self) -> int | None:
        """How many positions the model has parameters for; None when it needs none."""
        return None

    def click_probability(self, position: int, item: int) -> float:
        """P(click | the user looks at this position)."""
        raise NotImplementedError

    def stop_probability(self, position: int, item: int) -> float:
        """P(click, and the user looks no further | the user looks at this position)."""
        raise NotImplementedError

    def examination(self, items: Sequence[int]) -> list[float]:
        """The paper's chi(R, k): the probability that the user looks at each position."""
        chances, looks = [], 1.0
        for position, item in enumerate(items):
            chances.append(looks)
            looks *= 1.0 - self.stop_probability(position, item)
        return chances

    def reward(self, items: Sequence[int], top: int) -> float:
        """The expected reward r(R) of the first ``top`` positions of a list."""
        shown = list(enumerate(items))[:top]
        if self.counts_clicks:
            total = 0.0
            for position, item in shown:
                total += self.click_probability(position, item)
            return total
        unsatisfied = 1.0
        for position, item in shown:
            unsatisfied *= 1.0 - self.stop_probability(position, item)
        return 1.0 - unsatisfied

    def clicks(self, items: Sequence[int], coins: Coins) -> list[bool]:
        """One user's clicks on a list."""
        clicked = [False] * len(items)
        for position, item in enumerate(items):
            draw = coins.draw(Purpose.CLICK, item) / DRAW_SCALE
            clicked[position] = draw < self.click_probability(position, item)
            if clicked[position] and draw < self.stop_probability(position, item):
                break
        return clicked


@dataclass(frozen=True)
class CascadeModel(ClickModel):
    """CM: the user clicks the first attractive item and stops."""

    name: ClassVar[str] = "CM"
    counts_clicks: ClassVar[bool] = False

    def click_probability(self, position: int, item: int) -> float:
        return self.attraction[item]

    def stop_probability(self, position: int, item: int) -> float:
        return self.attraction[item]


@dataclass(frozen=True)
class DependentClickModel(ClickModel):
    """DCM: the user clicks attractive items, and after a click at k stops with v(k)."""

    abandonment: tuple[float, ...]

    name: ClassVar[str] = "DCM"
    counts_clicks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "abandonment", probabilities("abandonment", self.abandonment))

    @property
    def positions(self) -> int | None:
        return len(self.abandonment)

    def click_probability(self, position: int, item: int) -> float:
        return self.attraction[item]

    def stop_probability(self, position: int, item: int) -> float:
        return self.abandonment[position] * self.attraction[item]


@dataclass(frozen=True)
class PositionBasedModel(ClickModel):
    """PBM: position k is examined with chi(k), whatever else happens in the list.

    The draw decides examination and attraction together: both hold with chi(k) * alpha(i).
    """

    examination_by_position: tuple[float, ...]

    name: ClassVar[str] = "PBM"
    counts_clicks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        examined = probabilities("examination", self.examination_by_position)
        object.__setattr__(self, "examination_by_position", examined)

    @property
    def positions(self) -> int | None:
        return len(self.examination_by_position)

    def click_probability(self, position: int, item: int) -> float:
        return self.examination_by_position[position] * self.attraction[item]

    def stop_probability(self, position: int, item: int) -> float:
        return 0.0

    def examination(self, items: Sequence[int]) -> list[float]:
        return list(self.examination_by_position[: len(items)])


def make_click_model(
    name: str,
    attraction: Sequence[float],
    abandonment: Sequence[float] | None = None,
    examination: Sequence[float] | None = None,
) -> ClickModel:
    """The model of a problem record, by its name: CM, DCM or PBM."""
    if name == CascadeModel.name:
        return CascadeModel(tuple(attraction))
    if name == DependentClickModel.name:
        if abandonment is None:
            raise ValueError("DCM needs abandonment, got none: give v(k) for each position")
        return DependentClickModel(tuple(attraction), tuple(abandonment))
    if name == PositionBasedModel.name:
        if examination is None:
            raise ValueError("PBM needs examination, got none: give chi(k) for each position")
        return PositionBasedModel(tuple(attraction), tuple(examination))
    raise ValueError(f"click_model must be CM, DCM or PBM, got {name!r}")
