"""How good and how safe displayed lists are: regret, reward, NDCG, inversions, violations.

Sums over steps are kept exactly, in integers of 2^-52, so that the order in which steps are
added (one by one, by blocks, by counts of equal lists) never changes a digit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bubblerank.click_models import ClickModel

FIXED_POINT = 1 << 52


def to_fixed(value: float) -> int:
    """``value`` in units of 2^-52, cut towards zero."""
    return int(value * FIXED_POINT)


def best_list(attraction: Sequence[float], shown: int) -> list[int]:
    """R*: the ``shown`` most attractive items, best first; ties in the order of the items."""
    return sorted(range(len(attraction)), key=lambda item: -attraction[item])[:shown]


def dcg(attraction: Sequence[float], items: Sequence[int], top: int) -> float:
    """The sum over the top positions k = 1, 2, ... of alpha(R(k)) / log2(k + 1)."""
    total = 0.0
    for position, item in enumerate(items[:top]):
        total += attraction[item] / math.log2(position + 2)
    return total


def inversions(attraction: Sequence[float], items: Sequence[int]) -> int:
    """|V(R)|: the pairs of a list whose upper item is strictly less attractive than the lower."""
    return sum(
        attraction[upper] < attraction[lower]
        for place, upper in enumerate(items)
        for lower in items[place + 1 :]
    )


@dataclass(frozen=True)
class Yardstick:
    """What lists of one problem are measured against: the best list and the production list."""

    model: ClickModel
    shown: int
    top: int
    best_reward: float
    best_dcg: float
    initial_inversions: int

    def regret(self, items: Sequence[int]) -> float:
        """The expected reward lost against R*, at the top positions."""
        return self.best_reward - self.model.reward(items, self.top)

    def ndcg(self, items: Sequence[int]) -> float:
        """NDCG at the top positions; 1 where no item attracts anybody."""
        if self.best_dcg == 0.0:
            return 1.0
        return dcg(self.model.attraction, items, self.top) / self.best_dcg

    def violates(self, inverted: int) -> bool:
        """Whether |V(R_t)| > |V(R_0)| + K / 2."""
        return 2 * inverted > 2 * self.initial_inversions + self.shown


def make_yardstick(model: ClickModel, shown: int, top: int) -> Yardstick:
    """The yardstick of a problem whose production list is 0, 1, 2, ..., K of it shown."""
    if top < 1:
        raise ValueError(f"top must be at least 1, got {top}: quality is measured there")
    best = best_list(model.attraction, shown)
    return Yardstick(
        model=model,
        shown=shown,
        top=min(top, shown),
        best_reward=model.reward(best, top),
        best_dcg=dcg(model.attraction, best, top),
        initial_inversions=inversions(model.attraction, range(shown)),
    )


@dataclass
class Scorecard:
    """The metrics of one learner, summed over the steps so far."""

    regret: int = 0
    reward: int = 0
    ndcg: int = 0
    clicks: int = 0
    violations: int = 0

    def add(self, yardstick: Yardstick, items: Sequence[int], clicks: int) -> None:
        """Count one more step, in which ``items`` was shown and got that many clicks."""
        self.regret += to_fixed(yardstick.regret(items))
        self.reward += to_fixed(yardstick.model.reward(items, yardstick.top))
        self.ndcg += to_fixed(yardstick.ndcg(items))
        self.clicks += clicks
        inverted = inversions(yardstick.model.attraction, items)
        self.violations += yardstick.violates(inverted)


@dataclass(frozen=True)
class Checkpoint:
    """One row of metrics: sums up to a step, and the list displayed at that step."""

    step: int
    regret: float
    reward: float
    clicks: int
    violations: int
    ndcg: float
    mean_ndcg: float
    inversions: int


def checkpoint(card: Scorecard, step: int, ndcg: float, inverted: int) -> Checkpoint:
    """The row of a scorecard at a step whose displayed list has this NDCG and inversions."""
    return Checkpoint(
        step=step,
        regret=card.regret / FIXED_POINT,
        reward=card.reward / FIXED_POINT,
        clicks=card.clicks,
        violations=card.violations,
        ndcg=ndcg,
        mean_ndcg=card.ndcg / (FIXED_POINT * step),
        inversions=inverted,
    )


def log_spaced(steps: int, count: int) -> list[int]:
    """At most ``count`` different steps, evenly spaced in the logarithm, the last one ``steps``."""
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    if count < 1:
        raise ValueError(f"checkpoints must be at least 1, got {count}")
    if count == 1:
        return [steps]
    ratio = math.log(steps) / (count - 1)
    return sorted({round(math.exp(ratio * place)) for place in range(count - 1)} | {steps})
