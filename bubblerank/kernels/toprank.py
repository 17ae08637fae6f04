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
from bubblerank.kernels.tally import POUR_EVERY, make_tally, pour, tally_list
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


@njit(cache=True)
def advance(arrays, start, level, world, ledger, recorder, steps):
    """Shuffle, display, draw clicks and learn, ``steps`` times."""
    click, stop, pending, repeats = world.click, world.stop, ledger.pending, ledger.pending_count
    ahead, below = arrays.ahead, arrays.below
    shown, items = click.shape
    base = np.arange(items)
    order = np.empty(items, dtype=np.int64)
    ends = np.empty(items, dtype=np.int64)
    keys = np.empty(items, dtype=np.uint64)
    displayed = np.empty(shown, dtype=np.int64)
    clicked = np.zeros(shown, dtype=np.int64)
    item_clicked = np.zeros(items, dtype=np.int64)
    find_blocks(below, order, ends)
    tally = make_tally(world)
    factor, share, better, sums = tally.factor, tally.share, tally.better, tally.sums
    attraction, counts_clicks = world.attraction, world.counts_clicks
    best_reward, best_dcg = world.best_reward, world.best_dcg
    allowed = world.twice_allowed_inversions
    click_key, shuffle_key = world.click_key, world.shuffle_key
    recording = recorder.displayed.shape[0] > 0
    row_due = next_checkpoint(ledger)
    clicks = 0

    for done in range(steps):
        step = start + done + 1
        first = first_word(shuffle_key, step)
        place = 0
        while place < shown:
            end = ends[place]
            if end == place + 1:
                displayed[place] = order[place]
            else:
                shuffle_into(order, place, end, first, keys, displayed)
            place = end

        user = first_word(click_key, step)
        total = draw_clicks(click, stop, user, displayed, clicked)
        clicks += total
        if recording:
            record(recorder, done, displayed, clicked, base)
        if not is_pending(pending, displayed):
            tally_list(
                factor, share, attraction, better, counts_clicks, best_reward, best_dcg, allowed,
                pending, repeats[0], sums,
            )  # fmt: skip
            pending[:] = displayed
            repeats[0] = 0
        repeats[0] += 1
        if step == row_due or done % POUR_EVERY == 0:
            pour(sums, ledger.totals, ledger.counts)
        if step == row_due:
            ledger.counts[0] += clicks
            clicks = 0
            write_row(ledger, world, step, displayed)
            row_due = next_checkpoint(ledger)

        if total == 0:
            continue
        grown = False
        for position in range(shown):
            item_clicked[displayed[position]] = clicked[position]
        begin = 0
        for position in range(shown):
            end = ends[position]
            if clicked[position] and end > begin + 1:
                winner = displayed[position]
                for other in range(begin, end):
                    loser = order[other]
                    if item_clicked[loser]:
                        continue
                    ahead[winner, loser] += 1
                    wins = ahead[winner, loser] - ahead[loser, winner]
                    trials = ahead[winner, loser] + ahead[loser, winner]
                    if is_settled(wins, trials, level):
                        below[loser, winner] = True
                        grown = True
            if position + 1 == end:
                begin = end
        for position in range(shown):
            item_clicked[displayed[position]] = 0
        if grown:
            find_blocks(below, order, ends)
    pour(sums, ledger.totals, ledger.counts)
    settle(ledger, world)
    ledger.counts[0] += clicks


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
