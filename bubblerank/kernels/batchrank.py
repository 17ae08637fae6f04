"""BatchRank over many steps, compiled: ``bubblerank.rankers.batchrank`` to the bit.

The items of a batch stand at consecutive places of ``order``, from its first position on. Of
a batch with as many items as positions every item is counted at every step, so that the end
of its stage is known when the stage begins; only the last batch can have more.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bubblerank.config import RankerConfig
from bubblerank.kernels.coins import first_word, word
from bubblerank.kernels.kl import lower_bound, upper_bound
from bubblerank.kernels.ledger import (
    Ledger,
    Recorder,
    is_pending,
    next_checkpoint,
    record,
    settle,
    write_row,
)
from bubblerank.kernels.shuffle import shuffle_into
from bubblerank.kernels.tally import POUR_EVERY, await_list, make_tally, pour, tally_list
from bubblerank.kernels.world import World, draw_clicks
from bubblerank.kl import exploration_budget
from bubblerank.rankers.batchrank import Batch, BatchState, stage_length

Ints = npt.NDArray[np.int64]

_STAGES = 26
_FIRST, _END, _STAGE, _DUE = range(4)
_NEVER = 1 << 62


class BatchArrays(NamedTuple):
    """The state, changed in place.

    order: items batch by batch. rows: of each batch its first and end place, stage, and the
        step that its stage ends at (where every item is counted at every step).
    shown: counts of the items of a last batch with more items than positions.
    size: how many batches there are.
    """

    order: Ints
    rows: Ints
    shown: Ints
    clicks: Ints
    size: Ints


def to_arrays(state: BatchState, shown: int, lengths: Ints) -> BatchArrays:
    """A copy of a state, to be changed in place."""
    arrays = BatchArrays(
        order=np.zeros(state.items, dtype=np.int64),
        rows=np.zeros((shown, 4), dtype=np.int64),
        shown=np.zeros(state.items, dtype=np.int64),
        clicks=np.zeros(state.items, dtype=np.int64),
        size=np.array([len(state.batches)], dtype=np.int64),
    )
    first = 0
    for row, batch in zip(arrays.rows, state.batches, strict=False):
        end = first + len(batch.items)
        exact = len(batch.items) == batch.length
        due = state.step + int(lengths[batch.stage]) - batch.shown[0] if exact else _NEVER
        row[:] = first, end, batch.stage, due
        arrays.order[first:end] = batch.items
        arrays.shown[list(batch.items)] = batch.shown
        arrays.clicks[list(batch.items)] = batch.clicks
        first = end
    return arrays


def from_arrays(arrays: BatchArrays, shown: int, lengths: Ints, step: int) -> BatchState:
    """The state that arrays stand for."""
    batches = []
    for first, end, stage, due in arrays.rows[: arrays.size[0]].tolist():
        items = tuple(arrays.order[first:end].tolist())
        counts = tuple(arrays.shown[list(items)].tolist())
        if due != _NEVER:
            counts = (step + int(lengths[stage]) - due,) * len(items)
        clicks = tuple(arrays.clicks[list(items)].tolist())
        batches.append(Batch(min(end, shown) - first, stage, items, counts, clicks))
    return BatchState(arrays.order.size, tuple(batches), step)


@njit(inline="always")
def choose_least_shown(order, shown, first, end, length, first_shuffle, chosen, keys):
    """The ``length`` least shown items of a batch, ties by the second shuffle words."""
    items = order.size
    for place in range(first, end):
        keys[place] = word(first_shuffle, np.uint64(items + order[place]))
    found = first
    for place in range(first, end):
        item = order[place]
        ahead = 0
        for other in range(first, end):
            more = shown[order[other]] - shown[item]
            if more < 0:
                ahead += 1
            elif more == 0 and (
                keys[other] < keys[place] or (keys[other] == keys[place] and other < place)
            ):
                ahead += 1
        if ahead < length:
            chosen[found] = item
            found += 1


@njit(inline="always")
def collect_least_shown(order, shown, won, first, end, displayed, clicked):
    """CollectClicks of the last batch; how often its least shown item is counted by now."""
    least = shown[order[first]]
    for place in range(first, end):
        least = min(least, shown[order[place]])
    for position in range(first, displayed.size):
        item = displayed[position]
        if shown[item] == least:
            shown[item] += 1
            won[item] += clicked[position]
    now = least + 1
    for place in range(first, end):
        now = min(now, shown[order[place]])
    return now


@njit
def sort_places(order, first, end):
    """Sort the items of a batch, by insertion."""
    for begin in range(first + 1, end):
        item, place = order[begin], begin
        while place > first and order[place - 1] > item:
            order[place] = order[place - 1]
            place -= 1
        order[place] = item


@njit
def sort_by_lower(items, lower, upper):
    """Sort items by descending lower bound, equal ones as they stand; by insertion."""
    for begin in range(1, items.size):
        item, low, high, place = items[begin], lower[begin], upper[begin], begin
        while place > 0 and lower[place - 1] < low:
            items[place], lower[place] = items[place - 1], lower[place - 1]
            upper[place] = upper[place - 1]
            place -= 1
        items[place], lower[place], upper[place] = item, low, high


@njit
def begin_stage(arrays, row, first, end, stage, positions, step, lengths):
    """Write a batch at the beginning of a stage; its items stand ascending from ``first``."""
    sort_places(arrays.order, first, end)
    for place in range(first, end):
        arrays.shown[arrays.order[place]] = 0
        arrays.clicks[arrays.order[place]] = 0
    due = step + lengths[stage] if end <= positions else _NEVER
    arrays.rows[row, _FIRST] = first
    arrays.rows[row, _END] = end
    arrays.rows[row, _STAGE] = stage
    arrays.rows[row, _DUE] = due


@njit
def update_batch(arrays, row, positions, step, lengths, budget):
    """UpdateBatch at the end of a stage; whether the batch was split."""
    order = arrays.order
    first, end, stage = arrays.rows[row, _FIRST], arrays.rows[row, _END], arrays.rows[row, _STAGE]
    last = min(end, positions)
    lower = np.empty(end - first, dtype=np.int64)
    upper = np.empty(end - first, dtype=np.int64)
    for place in range(first, end):
        clicks = arrays.clicks[order[place]]
        lower[place - first] = lower_bound(clicks, lengths[stage], budget)
        upper[place - first] = upper_bound(clicks, lengths[stage], budget, 0.0)
    items = order[first:end].copy()
    sort_by_lower(items, lower, upper)

    highest = upper[end - first - 1]
    for s in range(end - first - 1, 0, -1):
        highest = max(highest, upper[s])
        if s < last - first and lower[s - 1] > highest:
            order[first:end] = items
            for other in range(arrays.size[0], row + 1, -1):
                arrays.rows[other] = arrays.rows[other - 1]
            arrays.size[0] += 1
            begin_stage(arrays, row, first, first + s, 0, positions, step, lengths)
            begin_stage(arrays, row + 1, first + s, end, 0, positions, step, lengths)
            return True

    kept = first
    for place in range(end - first):
        if upper[place] >= lower[last - first - 1]:
            order[kept] = items[place]
            kept += 1
    begin_stage(arrays, row, first, kept, stage + 1, positions, step, lengths)
    return False


@njit
def update_due(arrays, positions, step, lengths, budget):
    """Update the batches whose stage ends with this step; the step that the next one ends at."""
    row = 0
    while row < arrays.size[0]:
        if arrays.rows[row, _DUE] == step and update_batch(
            arrays, row, positions, step, lengths, budget
        ):
            row += 1
        row += 1
    return next_due(arrays)


@njit
def next_due(arrays):
    """The first step that the stage of a batch ends at."""
    due = _NEVER
    for row in range(arrays.size[0]):
        due = min(due, arrays.rows[row, _DUE])
    return due


@njit
def place_ends(arrays, ends):
    """The end of the batch of each place, and the first place of the last batch."""
    for row in range(arrays.size[0]):
        ends[arrays.rows[row, _FIRST] : arrays.rows[row, _END]] = arrays.rows[row, _END]
    return arrays.rows[arrays.size[0] - 1, _FIRST]


@njit(_nrt=False)  # type: ignore[call-overload]
def quiet_steps(
    order, shown, won, ends, keys, chosen, displayed, clicked, pending, repeats,
    factor, share, attraction, better, sums, counts_clicks, best_reward, best_dcg, allowed,
    click, stop, shuffle_key, click_key, step, last, last_first, last_length,
):  # fmt: skip
    """Steps up to ``last``, or up to one that ends the stage of a batch with hidden items.

    Such a batch begins at ``last_first`` and counts its items ``last_length`` times. Gives the
    step reached, the clicks, and whether that stage is over. Compiled without reference
    counting, which takes longer than the steps themselves.
    """
    clicks = 0
    positions = displayed.size
    has_hidden = ends[last_first] > positions
    always_counted = last_first if has_hidden else positions
    while step < last:
        step += 1
        first = first_word(shuffle_key, step)
        place = 0
        while place < always_counted:
            end = ends[place]
            if end == place + 1:
                displayed[place] = order[place]
            else:
                shuffle_into(order, place, end, first, keys, displayed)
            place = end
        if has_hidden:
            end = ends[place]
            choose_least_shown(order, shown, place, end, positions - place, first, chosen, keys)
            shuffle_into(chosen, place, positions, first, keys, displayed)

        clicks += draw_clicks(click, stop, first_word(click_key, step), displayed, clicked)
        if not is_pending(pending, displayed):
            tally_list(
                factor, share, attraction, better, counts_clicks, best_reward, best_dcg, allowed,
                pending, repeats[0], sums,
            )  # fmt: skip
            await_list(pending, repeats, displayed)
        repeats[0] += 1
        for position in range(always_counted):
            won[displayed[position]] += clicked[position]
        if has_hidden:
            end = ends[last_first]
            if last_length == collect_least_shown(
                order, shown, won, last_first, end, displayed, clicked
            ):
                return step, clicks, True
    return step, clicks, False


@njit(cache=True)
def advance(arrays, start, lengths, budget, world, ledger, recorder, steps):
    """Shuffle, display, draw clicks and learn, ``steps`` times."""
    shown, items = world.click.shape
    base = np.arange(items)
    ends = np.empty(items, dtype=np.int64)
    keys = np.empty(items, dtype=np.uint64)
    chosen = np.empty(items, dtype=np.int64)
    displayed = np.empty(shown, dtype=np.int64)
    clicked = np.zeros(shown, dtype=np.int64)
    tally = make_tally(world)
    recording = recorder.displayed.shape[0] > 0
    row_due = next_checkpoint(ledger)
    due = next_due(arrays)
    last_first = place_ends(arrays, ends)
    step, end = start, start + steps

    while step < end:
        bottom = arrays.size[0] - 1
        last = step + 1 if recording else min(end, due, step + POUR_EVERY)
        if row_due:
            last = min(last, row_due)
        step, clicks, is_over = quiet_steps(
            arrays.order, arrays.shown, arrays.clicks, ends, keys, chosen, displayed, clicked,
            ledger.pending, ledger.pending_count, tally.factor, tally.share, world.attraction,
            tally.better, tally.sums, world.counts_clicks, world.best_reward, world.best_dcg,
            world.twice_allowed_inversions, world.click, world.stop, world.shuffle_key,
            world.click_key, step, last, last_first, lengths[arrays.rows[bottom, _STAGE]],
        )  # fmt: skip
        ledger.counts[0] += clicks
        pour(tally.sums, ledger.totals, ledger.counts)
        if recording:
            record(recorder, step - start - 1, displayed, clicked, base)
        if step == row_due:
            write_row(ledger, world, step, displayed)
            row_due = next_checkpoint(ledger)
        if is_over:
            arrays.rows[bottom, _DUE] = step
        if is_over or step == due:
            due = update_due(arrays, shown, step, lengths, budget)
            last_first = place_ends(arrays, ends)
    settle(ledger, world)


def advance_state(
    state: BatchState,
    config: RankerConfig,
    world: World,
    ledger: Ledger,
    recorder: Recorder,
    steps: int,
) -> BatchState:
    """The state after ``steps`` more steps in this world."""
    horizon, shown = config.known_horizon("batchrank"), config.shown(state.items)
    lengths = np.array([stage_length(stage, horizon) for stage in range(_STAGES)], dtype=np.int64)
    arrays = to_arrays(state, shown, lengths)
    budget = exploration_budget(horizon)
    advance(arrays, state.step, lengths, budget, world, ledger, recorder, steps)
    return from_arrays(arrays, shown, lengths, state.step + steps)
