"""BubbleRank over many steps, compiled: ``bubblerank.rankers.bubble`` to the bit.

The statistics of neighbours in the base list are kept by position while the base list stays
as it is, and go back into the matrices only when it changes. Metrics come from counts of
(parity, exchange pattern), evaluated only when the base list changes or a row is due.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bubblerank.config import RankerConfig
from bubblerank.kernels.coins import coin, first_word, pick
from bubblerank.kernels.ledger import (
    Ledger,
    Recorder,
    add_steps,
    is_pending,
    make_pending,
    next_checkpoint,
    record,
    settle,
    write_row,
)
from bubblerank.kernels.world import World, draw_clicks
from bubblerank.rankers.bubble import BubbleState

Ints = npt.NDArray[np.int64]

_MAX_COUNTED_PAIRS = 10
_MAX_COUNTED_LISTS = 1 << 16
_DOUBLINGS = 50
_CHALLENGE_COIN = 32


class BubbleArrays(NamedTuple):
    """The state, changed in place. clock: step, horizon."""

    base: Ints
    wins: Ints
    trials: Ints
    clock: Ints


def to_arrays(state: BubbleState) -> BubbleArrays:
    """A copy of a state, to be changed in place."""
    return BubbleArrays(
        base=np.array(state.base, dtype=np.int64),
        wins=state.wins.copy(),
        trials=state.trials.copy(),
        clock=np.array([state.step, state.horizon], dtype=np.int64),
    )


def from_arrays(arrays: BubbleArrays) -> BubbleState:
    """The state that arrays stand for; they must not be changed afterwards."""
    step, horizon = arrays.clock.tolist()
    return BubbleState(tuple(arrays.base.tolist()), arrays.wins, arrays.trials, step, horizon)


class BubbleSettings(NamedTuple):
    """log(1 / delta) for the horizon in force and for each time that it doubles."""

    log_inverse_deltas: npt.NDArray[np.float64]
    doubling: bool
    freeze_decided: bool


@lru_cache(maxsize=256)
def make_settings(config: RankerConfig, horizon: int) -> BubbleSettings:
    """Settings for a state whose horizon in force is this one; shared, not to be changed."""
    table = [config.log_inverse_delta(horizon << times) for times in range(_DOUBLINGS)]
    return BubbleSettings(np.array(table), config.doubling, config.freeze_decided)


@njit(inline="always")
def beats(wins, trials, log_inverse_delta):
    """Whether s > 2 sqrt(n log(1 / delta))."""
    return wins > 0 and np.float64(wins * wins) > 4.0 * log_inverse_delta * np.float64(trials)


@njit
def load_neighbours(arrays, shown, log_inverse_delta, wins, trials, is_open):
    """The statistics of neighbours by upper position, and which pairs may be exchanged."""
    for upper in range(shown - 1):
        above, below = arrays.base[upper], arrays.base[upper + 1]
        wins[upper] = arrays.wins[above, below]
        trials[upper] = arrays.trials[above, below]
        is_open[upper] = not beats(wins[upper], trials[upper], log_inverse_delta)


@njit
def store_neighbours(arrays, shown, wins, trials):
    """Put the statistics of neighbours back into the matrices."""
    for upper in range(shown - 1):
        above, below = arrays.base[upper], arrays.base[upper + 1]
        arrays.wins[above, below] = wins[upper]
        arrays.wins[below, above] = -wins[upper]
        arrays.trials[above, below] = trials[upper]
        arrays.trials[below, above] = trials[upper]


@njit
def extend_horizon(arrays, step):
    """The doubling trick: double until the step is within, restart from R_0; how often."""
    doublings = 0
    while step > arrays.clock[1]:
        arrays.clock[1] *= 2
        doublings += 1
    for place in range(arrays.base.size):
        arrays.base[place] = place
    return doublings


@njit
def promote(arrays, shown, log_inverse_delta):
    """One pass down the base list (lines 24-28); whether anything moved."""
    base, wins, trials = arrays.base, arrays.wins, arrays.trials
    moved = False
    for upper in range(shown - 1):
        above, below = base[upper], base[upper + 1]
        if beats(wins[below, above], trials[below, above], log_inverse_delta):
            base[upper], base[upper + 1] = below, above
            moved = True
    for place in range(shown, base.size):
        last, hidden = base[shown - 1], base[place]
        if beats(wins[hidden, last], trials[hidden, last], log_inverse_delta):
            base[shown - 1], base[place] = hidden, last
            moved = True
    return moved


@njit
def choose_challenger(arrays, shown, log_inverse_delta, first):
    """A uniform hidden item that the item at the last position does not beat, else -1."""
    last = arrays.base[shown - 1]
    count = 0
    for place in range(shown, arrays.base.size):
        hidden = arrays.base[place]
        if not beats(arrays.wins[last, hidden], arrays.trials[last, hidden], log_inverse_delta):
            count += 1
    if count == 0:
        return -1
    wanted = pick(first, count)
    for place in range(shown, arrays.base.size):
        hidden = arrays.base[place]
        if not beats(arrays.wins[last, hidden], arrays.trials[last, hidden], log_inverse_delta):
            if wanted == 0:
                return hidden
            wanted -= 1
    return -1


@njit
def learn_hidden(arrays, displayed, hidden, log_inverse_delta, freeze):
    """A click on the last position is a win over the hidden item."""
    wins, trials = arrays.wins, arrays.trials
    if freeze and (
        beats(wins[displayed, hidden], trials[displayed, hidden], log_inverse_delta)
        or beats(wins[hidden, displayed], trials[hidden, displayed], log_inverse_delta)
    ):
        return
    wins[displayed, hidden] += 1
    wins[hidden, displayed] -= 1
    trials[displayed, hidden] += 1
    trials[hidden, displayed] += 1


@njit
def _make_counts(shown, items):
    """Counts by parity, last item (0: not a hidden one) and exchange pattern; empty if too many."""
    pairs, lasts = shown // 2, items - shown + 1
    if pairs > _MAX_COUNTED_PAIRS or lasts << pairs > _MAX_COUNTED_LISTS:
        return np.zeros((2, 0, 0), dtype=np.int64)
    return np.zeros((2, lasts, 1 << pairs), dtype=np.int64)


@njit
def _sum_patterns(counts, ledger, world, base, displayed):
    """Sum the counted lists around a base list, and start afresh."""
    shown = displayed.size
    for parity in range(2):
        for last in range(counts.shape[1]):
            for pattern in range(counts.shape[2]):
                if counts[parity, last, pattern] == 0:
                    continue
                for position in range(shown):
                    displayed[position] = base[position]
                if last:
                    displayed[shown - 1] = base[shown - 1 + last]
                upper = parity
                bits = pattern
                while bits:
                    if bits & 1:
                        displayed[upper] = base[upper + 1]
                        displayed[upper + 1] = base[upper]
                    bits >>= 1
                    upper += 2
                add_steps(ledger, world, displayed, counts[parity, last, pattern])
                counts[parity, last, pattern] = 0


@njit
def place_of(base, item):
    """Where an item is in the base list."""
    place = 0
    while base[place] != item:
        place += 1
    return place


@njit(inline="always")
def exchange_neighbours(base, is_open, first, parity, displayed, exchanged):
    """Lines 6-11: the displayed list; the exchange pattern as bits (of the first 63 pairs)."""
    last = displayed.size - 1
    displayed[0] = base[0]
    displayed[last] = base[last]
    pattern = 0
    pair = 0
    for upper in range(parity, last, 2):
        above, below = base[upper], base[upper + 1]
        flip = is_open[upper] & coin(first, pair)
        exchanged[upper] = flip
        displayed[upper] = below if flip else above
        displayed[upper + 1] = above if flip else below
        pattern |= int(flip) << (pair & 63)
        pair += 1
    return pattern


@njit(inline="always")
def learn_neighbours(wins, trials, is_open, exchanged, clicked, parity, level, freeze):
    """Lines 15-22 on statistics by position; whether a lower item now beats its upper one."""
    settled = False
    for upper in range(parity, clicked.size - 1, 2):
        difference = clicked[upper] - clicked[upper + 1]
        if difference == 0:
            continue
        if freeze and (not is_open[upper] or beats(-wins[upper], trials[upper], level)):
            continue
        wins[upper] += -difference if exchanged[upper] else difference
        trials[upper] += 1
        is_open[upper] = not beats(wins[upper], trials[upper], level)
        if beats(-wins[upper], trials[upper], level):
            settled = True
    return settled


@njit(_nrt=False)  # type: ignore[call-overload]
def quiet_steps(
    base, wins, trials, is_open, displayed, exchanged, clicked, counts,
    click, stop, exchange_key, click_key, step, last, level, freeze,
):  # fmt: skip
    """Steps up to ``last``, or up to one that settles a pair; where nothing but users happens.

    Gives the step reached, the clicks, and whether a pass is due. Compiled without reference
    counting, which takes as long as the steps themselves: so it can make no arrays.
    """
    clicks = 0
    while step < last:
        step += 1
        parity = step & 1
        first = first_word(exchange_key, step)
        pattern = exchange_neighbours(base, is_open, first, parity, displayed, exchanged)
        counts[parity, 0, pattern] += 1
        user = first_word(click_key, step)
        clicks += draw_clicks(click, stop, user, displayed, clicked)
        if learn_neighbours(wins, trials, is_open, exchanged, clicked, parity, level, freeze):
            return step, clicks, True
    return step, clicks, False


@njit(cache=True)
def advance(arrays, settings, world, ledger, recorder, steps):
    """Display, draw clicks, learn and promote, ``steps`` times."""
    base, horizon = arrays.base, arrays.clock[1]
    click, stop, pending, repeats = world.click, world.stop, ledger.pending, ledger.pending_count
    shown, items = world.click.shape[0], base.size
    displayed = np.empty(shown, dtype=np.int64)
    scratch = np.empty(shown, dtype=np.int64)
    clicked = np.zeros(shown, dtype=np.int64)
    exchanged = np.zeros(shown, dtype=np.bool_)
    wins = np.zeros(shown, dtype=np.int64)
    trials = np.zeros(shown, dtype=np.int64)
    is_open = np.zeros(shown, dtype=np.bool_)
    counts = _make_counts(shown, items)
    counted = counts.size > 0
    counted_base = base.copy()
    freeze, doubling = settings.freeze_decided, settings.doubling
    doublings = 0
    level = settings.log_inverse_deltas[0]
    load_neighbours(arrays, shown, level, wins, trials, is_open)
    pass_due = True
    recording = recorder.displayed.shape[0] > 0
    quiet = counted and items == shown and not recording
    row_due = next_checkpoint(ledger)
    clicks = 0
    start = step = arrays.clock[0]

    while step < start + steps:
        if doubling and step + 1 > horizon:
            store_neighbours(arrays, shown, wins, trials)
            _sum_patterns(counts, ledger, world, counted_base, scratch)
            doublings += extend_horizon(arrays, step + 1)
            horizon = arrays.clock[1]
            level = settings.log_inverse_deltas[doublings]
            load_neighbours(arrays, shown, level, wins, trials, is_open)
            counted_base[:] = base
            pass_due = True

        if quiet and not pass_due and step + 1 != row_due:
            last = start + steps
            if row_due:
                last = min(last, row_due - 1)
            if doubling:
                last = min(last, horizon)
            step, more, pass_due = quiet_steps(
                base, wins, trials, is_open, displayed, exchanged, clicked, counts,
                click, stop, world.exchange_key, world.click_key, step, last, level, freeze,
            )  # fmt: skip
            clicks += more
        else:
            step += 1
            parity = step & 1
            first = first_word(world.exchange_key, step)
            pattern = exchange_neighbours(base, is_open, first, parity, displayed, exchanged)
            hidden = -1
            last_item = 0
            if items > shown and (shown - parity) & 1:
                challenge = first_word(world.challenge_key, step)
                hidden = choose_challenger(arrays, shown, level, challenge)
                if hidden >= 0 and coin(challenge, _CHALLENGE_COIN):
                    displayed[shown - 1] = hidden
                    last_item = place_of(base, hidden) - shown + 1
                    hidden = base[shown - 1]

            user = first_word(world.click_key, step)
            clicks += draw_clicks(click, stop, user, displayed, clicked)
            if recording:
                record(recorder, step - start - 1, displayed, clicked, base)
            if counted:
                counts[parity, last_item, pattern] += 1
            else:
                if not is_pending(pending, displayed):
                    make_pending(ledger, world, displayed)
                repeats[0] += 1
            if step == row_due:
                _sum_patterns(counts, ledger, world, counted_base, scratch)
                ledger.counts[0] += clicks
                clicks = 0
                write_row(ledger, world, step, displayed)
                row_due = next_checkpoint(ledger)

            if learn_neighbours(wins, trials, is_open, exchanged, clicked, parity, level, freeze):
                pass_due = True
            if hidden >= 0 and clicked[shown - 1]:
                learn_hidden(arrays, displayed[shown - 1], hidden, level, freeze)
                pass_due = True

        if pass_due:
            store_neighbours(arrays, shown, wins, trials)
            pass_due = promote(arrays, shown, level)
            if pass_due:
                _sum_patterns(counts, ledger, world, counted_base, scratch)
                load_neighbours(arrays, shown, level, wins, trials, is_open)
                counted_base[:] = base

    store_neighbours(arrays, shown, wins, trials)
    _sum_patterns(counts, ledger, world, counted_base, scratch)
    settle(ledger, world)
    ledger.counts[0] += clicks
    arrays.clock[0] = start + steps


def advance_state(
    state: BubbleState,
    config: RankerConfig,
    world: World,
    ledger: Ledger,
    recorder: Recorder,
    steps: int,
) -> BubbleState:
    """The state after ``steps`` more steps in this world."""
    arrays = to_arrays(state)
    advance(arrays, make_settings(config, state.horizon), world, ledger, recorder, steps)
    return from_arrays(arrays)
