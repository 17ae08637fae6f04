"""BatchRank (Zoghi et al., "Online Learning to Rank in Stochastic Click Models", ICML 2017),
readable.

The positions are divided into batches of consecutive ones. A batch has at least as many items
as positions (only the last one may have more) and works in stages: in stage l each of its
items is counted n_l = ceil(16 * 4^l log n) times; then it is split where the KL bounds of the
click probabilities allow it, or loses the items that cannot be among its best ones. Statistics
restart with each stage.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bubblerank.coins import Coins, Purpose
from bubblerank.config import RankerConfig
from bubblerank.kl import exploration_budget, lower_bound, upper_bound
from bubblerank.rankers.policy import Choice, check_extent


@dataclass(frozen=True)
class Batch:
    """Items (ascending) that compete for ``length`` positions, and their counts in a stage."""

    length: int
    stage: int
    items: tuple[int, ...]
    shown: tuple[int, ...]
    clicks: tuple[int, ...]


@dataclass(frozen=True)
class BatchState:
    """The batches from the top position down; items in none of them are never shown again."""

    items: int
    batches: tuple[Batch, ...]
    step: int


def new_batch(length: int, stage: int, items: Sequence[int]) -> Batch:
    """A batch at the beginning of a stage."""
    zeros = (0,) * len(items)
    return Batch(length, stage, tuple(sorted(items)), zeros, zeros)


def start(items: int, config: RankerConfig) -> BatchState:
    """One batch of all items and positions."""
    config.known_horizon("batchrank")
    return BatchState(items, (new_batch(config.shown(items), 0, range(items)),), 0)


def stage_length(stage: int, horizon: int) -> int:
    """n_l, how often each item is counted in a stage; a horizon of 1 counts as 2."""
    return math.ceil(16.0 * 4.0**stage * math.log(max(horizon, 2)))


def prepare(state: BatchState, config: RankerConfig) -> BatchState:
    """Nothing to prepare."""
    return state


def arrange(batch: Batch, items: int, coins: Coins) -> list[int]:
    """The items least shown so far, ties at random, in a uniformly random order.

    Which items comes from the shuffle words ``items`` + i, their order from the words i:
    from the same words, those that a tie lets in would stand above the others too often.
    """
    shown = dict(zip(batch.items, batch.shown, strict=True))
    chosen: Sequence[int] = batch.items
    if len(chosen) > batch.length:
        chosen = sorted(
            chosen, key=lambda item: (shown[item], coins.word(Purpose.SHUFFLE, items + item), item)
        )[: batch.length]
    return sorted(chosen, key=lambda item: (coins.word(Purpose.SHUFFLE, item), item))


def decide(state: BatchState, config: RankerConfig, coins: Coins) -> Choice:
    """DisplayBatch, for each batch in turn."""
    displayed: list[int] = []
    for batch in state.batches:
        displayed += arrange(batch, state.items, coins)
    return Choice(tuple(displayed))


def collect(batch: Batch, clicked: dict[int, bool]) -> Batch:
    """CollectClicks: count the displayed items that are among the least shown of their batch."""
    least = min(batch.shown)
    shown, clicks = list(batch.shown), list(batch.clicks)
    for place, item in enumerate(batch.items):
        if item in clicked and shown[place] == least:
            shown[place] += 1
            clicks[place] += clicked[item]
    return Batch(batch.length, batch.stage, batch.items, tuple(shown), tuple(clicks))


def update(batch: Batch, horizon: int) -> tuple[Batch, ...]:
    """UpdateBatch: at the end of a stage, split the batch or go to the next stage.

    With the items d_1, d_2, ... by their lower bounds, the batch is split at the lowest
    position s (the largest s) where L(d_s) exceeds the upper bounds of all items after d_s.
    Without a split, an item stays if its upper bound reaches the lower bound of d_length.
    """
    length = stage_length(batch.stage, horizon)
    if min(batch.shown) < length:
        return (batch,)
    budget = exploration_budget(horizon)
    lower, upper = {}, {}
    for item, clicks in zip(batch.items, batch.clicks, strict=True):
        lower[item] = lower_bound(clicks, length, budget)
        upper[item] = upper_bound(clicks, length, budget)
    order = sorted(batch.items, key=lambda item: (-lower[item], item))
    for s in range(batch.length - 1, 0, -1):
        if lower[order[s - 1]] > max(upper[item] for item in order[s:]):
            return new_batch(s, 0, order[:s]), new_batch(batch.length - s, 0, order[s:])
    needed = lower[order[batch.length - 1]]
    return (
        new_batch(
            batch.length, batch.stage + 1, [item for item in batch.items if upper[item] >= needed]
        ),
    )


def observe(
    state: BatchState,
    config: RankerConfig,
    choice: Choice,
    clicks: Sequence[bool],
    coins: Coins,
) -> BatchState:
    """Collect the clicks, then update the batches whose stage is over."""
    horizon = config.known_horizon("batchrank")
    clicked = {item: bool(click) for item, click in zip(choice.displayed, clicks, strict=True)}
    batches: list[Batch] = []
    for batch in state.batches:
        batches += update(collect(batch, clicked), horizon)
    return BatchState(state.items, tuple(batches), state.step + 1)


def base_list(state: BatchState) -> tuple[int, ...]:
    """R_0."""
    return tuple(range(state.items))


def pack(state: BatchState) -> list[int]:
    """Step, number of items, number of batches, then of each batch its positions, stage, items
    and least count, and of each item its index, and twice its clicks, plus 1 where it was
    counted once more than the least.
    """
    numbers = [state.step, state.items, len(state.batches)]
    for batch in state.batches:
        least = min(batch.shown)
        numbers += [batch.length, batch.stage, len(batch.items), least]
        for item, shown, clicks in zip(batch.items, batch.shown, batch.clicks, strict=True):
            numbers += [item, 2 * clicks + shown - least]
    return numbers


def unpack(numbers: Sequence[int], config: RankerConfig) -> BatchState:
    """The state of ``pack``."""
    if len(numbers) < 3 or min(numbers) < 0:
        raise ValueError(f"no batchrank state: {len(numbers)} numbers, of which none is negative")
    step, items, count = numbers[:3]
    check_extent("batchrank", step, items)
    place, batches = 3, []
    for _ in range(count):
        length, stage, size, least = numbers[place : place + 4]
        if not 1 <= length <= size:
            raise ValueError(f"no batchrank state: {size} items for {length} positions")
        pairs = numbers[place + 4 : place + 4 + 2 * size]
        counts = [divmod(code, 2) for code in pairs[1::2]]
        shown = tuple(least + more for _, more in counts)
        batches.append(
            Batch(length, stage, tuple(pairs[::2]), shown, tuple(clicks for clicks, _ in counts))
        )
        place += 4 + 2 * size
    used = sorted(item for batch in batches for item in batch.items)
    if place != len(numbers) or len(set(used)) != len(used) or (used and used[-1] >= items):
        raise ValueError(f"no batchrank state: {len(numbers)} numbers, items {used} of {items}")
    return BatchState(items, tuple(batches), step)
