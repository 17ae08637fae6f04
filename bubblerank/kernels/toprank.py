"""TopRank over many steps, compiled: ``bubblerank.rankers.toprank`` to the bit.

Kept is how often i was clicked and j was not, ``ahead[i, j]``: S and N are its difference and
sum. A pair is tested when it has changed, first without the logarithm of N; the blocks are
computed anew only when the relation has grown.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bubblerank.config import RankerConfig
from bubblerank.kernels.coins import first_word
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
from bubblerank.rankers.toprank import TopState, confidence_level

Ints = npt.NDArray[np.int64]


class TopArrays(NamedTuple):
    """The state, changed in place."""

    ahead: Ints
    below: npt.NDArray[np.bool_]


@njit(inline="always")
def is_settled(wins, trials, level):
    """Whether S >= sqrt(2 N log(c sqrt(N) / delta)); the first test is implied by the second."""
    square = np.float64(wins * wins)
    return (
        wins > 0
        and square >= 2.0 * trials * level
        and square >= 2.0 * trials * (level + 0.5 * math.log(trials))
    )


@njit
def find_blocks(below, order, ends):
    """Write the items block by block into ``order`` and each place's block end into ``ends``."""
    items = order.size
    left = np.ones(items, dtype=np.bool_)
    placed = 0
    while placed < items:
        begin = placed
        for j in range(items):
            beaten = False
            for i in range(items):
                if left[i] and below[j, i]:
                    beaten = True
                    break
            if left[j] and not beaten:
                order[placed] = j
                placed += 1
        if placed == begin:
            for j in range(items):
                if left[j]:
                    order[placed] = j
                    placed += 1
        for place in range(begin, placed):
            left[order[place]] = False
            ends[place] = placed


@njit(inline="always")
def learn(ahead, below, order, ends, displayed, clicked, item_clicked, level):
    """Add the pairs of a clicked item and one of its block that is not; whether any is settled."""
    grown = False
    begin = 0
    for position in range(displayed.size):
        item_clicked[displayed[position]] = clicked[position]
    for position in range(displayed.size):
        end = ends[position]
        if clicked[position] and end > begin + 1:
            winner = displayed[position]
            for place in range(begin, end):
                loser = order[place]
                if not item_clicked[loser]:
                    ahead[winner, loser] += 1
                    wins = ahead[winner, loser] - ahead[loser, winner]
                    trials = ahead[winner, loser] + ahead[loser, winner]
                    if is_settled(wins, trials, level):
                        below[loser, winner] = True
                        grown = True
        if position + 1 == end:
            begin = end
    for position in range(displayed.size):
        item_clicked[displayed[position]] = 0
    return grown


@njit(_nrt=False)  # type: ignore[call-overload]
def quiet_steps(
    ahead, below, order, ends, keys, displayed, clicked, item_clicked, pending, repeats,
    factor, share, attraction, better, sums, counts_clicks, best_reward, best_dcg, allowed,
    click, stop, shuffle_key, click_key, step, last, level,
):  # fmt: skip
    """Steps up to ``last``, or up to one after which the relation has grown.

    Gives the step reached, the clicks, and whether the relation has grown. Compiled without
    reference counting, which takes longer than the steps themselves.
    """
    clicks = 0
    while step < last:
        step += 1
        first = first_word(shuffle_key, step)
        place = 0
        while place < displayed.size:
            end = ends[place]
            if end == place + 1:
                displayed[place] = order[place]
            else:
                shuffle_into(order, place, end, first, keys, displayed)
            place = end
        total = draw_clicks(click, stop, first_word(click_key, step), displayed, clicked)
        clicks += total
        if not is_pending(pending, displayed):
            tally_list(
                factor, share, attraction, better, counts_clicks, best_reward, best_dcg, allowed,
                pending, repeats[0], sums,
            )  # fmt: skip
            await_list(pending, repeats, displayed)
        repeats[0] += 1
        if total > 0 and learn(ahead, below, order, ends, displayed, clicked, item_clicked, level):
            return step, clicks, True
    return step, clicks, False


@njit(cache=True)
def advance(arrays, start, level, world, ledger, recorder, steps):
    """Shuffle, display, draw clicks and learn, ``steps`` times."""
    shown, items = world.click.shape
    base = np.arange(items)
    order = np.empty(items, dtype=np.int64)
    ends = np.empty(items, dtype=np.int64)
    keys = np.empty(items, dtype=np.uint64)
    displayed = np.empty(shown, dtype=np.int64)
    clicked = np.zeros(shown, dtype=np.int64)
    item_clicked = np.zeros(items, dtype=np.int64)
    tally = make_tally(world)
    recording = recorder.displayed.shape[0] > 0
    row_due = next_checkpoint(ledger)
    step, end = start, start + steps
    grown = True

    while step < end:
        if grown:
            find_blocks(arrays.below, order, ends)
        last = step + 1 if recording else min(end, step + POUR_EVERY)
        if row_due:
            last = min(last, row_due)
        step, clicks, grown = quiet_steps(
            arrays.ahead, arrays.below, order, ends, keys, displayed, clicked, item_clicked,
            ledger.pending, ledger.pending_count, tally.factor, tally.share, world.attraction,
            tally.better, tally.sums, world.counts_clicks, world.best_reward, world.best_dcg,
            world.twice_allowed_inversions, world.click, world.stop, world.shuffle_key,
            world.click_key, step, last, level,
        )  # fmt: skip
        ledger.counts[0] += clicks
        pour(tally.sums, ledger.totals, ledger.counts)
        if recording:
            record(recorder, step - start - 1, displayed, clicked, base)
        if step == row_due:
            write_row(ledger, world, step, displayed)
            row_due = next_checkpoint(ledger)
    settle(ledger, world)


def advance_state(
    state: TopState,
    config: RankerConfig,
    world: World,
    ledger: Ledger,
    recorder: Recorder,
    steps: int,
) -> TopState:
    """The state after ``steps`` more steps in this world."""
    arrays = TopArrays((state.trials + state.wins) // 2, state.below.copy())
    advance(arrays, state.step, confidence_level(config), world, ledger, recorder, steps)
    ahead = arrays.ahead
    return TopState(ahead - ahead.T, ahead + ahead.T, arrays.below, state.step + steps)
