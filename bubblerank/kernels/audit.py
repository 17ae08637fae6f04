"""The audit over many displays, compiled: ``bubblerank.audit`` to the bit."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bubblerank.kernels.bubble import (
    _CHALLENGE_COIN,
    beats,
    choose_challenger,
    exchange_neighbours,
    extend_horizon,
    learn_hidden,
    learn_neighbours,
    load_neighbours,
    promote,
    store_neighbours,
)
from bubblerank.kernels.coins import coin, first_word

_FINE, _FAR, _PARITY, _DECIDED = 0, 1, 2, 3
_WORD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class Slips(NamedTuple):
    """The first rows that depart from the replay, and how many there are.

    rows: row, whether the base list is another, reason, place, whether the coins drew another
    list. counts: slips kept, rows that depart in structure, rows that the coins draw otherwise.
    """

    rows: npt.NDArray[np.int64]
    base: npt.NDArray[np.int64]
    drawn: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def make_slips(most: int, items: int, shown: int) -> Slips:
    """Room for the first ``most`` slips."""
    return Slips(
        rows=np.zeros((most, 5), dtype=np.int64),
        base=np.zeros((most, items), dtype=np.int64),
        drawn=np.zeros((most, shown), dtype=np.int64),
        counts=np.zeros(3, dtype=np.int64),
    )


@njit
def judge(arrays, displayed, is_open, parity, level, exchanged):
    """Reason and place at which a list departs from the base list; which pairs it exchanges."""
    base, shown = arrays.base, displayed.size
    for upper in range(shown):
        exchanged[upper] = False
    place = 0
    while place < shown:
        item = displayed[place]
        if item == base[place]:
            place += 1
        elif place + 1 < shown and item == base[place + 1] and displayed[place + 1] == base[place]:
            if place & 1 != parity:
                return _PARITY, place
            if not is_open[place]:
                return _DECIDED, place
            exchanged[place] = True
            place += 2
        else:
            hidden = False
            for below in range(shown, base.size):
                hidden = hidden or base[below] == item
            if place != shown - 1 or not hidden:
                return _FAR, place
            if (shown - parity) & 1 == 0:
                return _PARITY, place
            last = base[place]
            if beats(arrays.wins[last, item], arrays.trials[last, item], level):
                return _DECIDED, place
            place += 1
    return _FINE, 0


@njit
def learn_any(arrays, displayed, clicked, parity, level, freeze):
    """Lines 15-22 for a list that the ranker could not display."""
    wins, trials = arrays.wins, arrays.trials
    for upper in range(parity, displayed.size - 1, 2):
        above, below = displayed[upper], displayed[upper + 1]
        difference = clicked[upper] - clicked[upper + 1]
        if difference == 0:
            continue
        if freeze and (
            beats(wins[above, below], trials[above, below], level)
            or beats(wins[below, above], trials[below, above], level)
        ):
            continue
        wins[above, below] += difference
        wins[below, above] -= difference
        trials[above, below] += 1
        trials[below, above] += 1


@njit(cache=True)
def replay_rows(
    arrays, settings, doublings, exchange_key, challenge_key, seeded, rows, first, last, slips
):
    """Replay rows ``first`` to ``last`` - 1, learn from each, and note those that depart.

    doublings: how often the horizon has doubled so far, kept between calls.
    """
    base = arrays.base
    steps, base_id, shown_id, usable = rows.step, rows.base_id, rows.shown_id, rows.usable
    bases, lists, clicks = rows.bases, rows.shown, rows.clicks
    shown, items = lists.shape[1], base.size
    displayed = np.empty(shown, dtype=np.int64)
    drawn = np.zeros(shown, dtype=np.int64)
    clicked = np.zeros(shown, dtype=np.int64)
    exchanged = np.zeros(shown, dtype=np.bool_)
    scratch = np.zeros(shown, dtype=np.bool_)
    wins = np.zeros(shown, dtype=np.int64)
    trials = np.zeros(shown, dtype=np.int64)
    is_open = np.zeros(shown, dtype=np.bool_)
    freeze, doubling = settings.freeze_decided, settings.doubling
    level = settings.log_inverse_deltas[doublings[0]]
    load_neighbours(arrays, shown, level, wins, trials, is_open)
    pass_due = True

    for row in range(first, last):
        if not usable[row]:
            continue
        step = steps[row]
        parity = step & 1
        if doubling and step > arrays.clock[1]:
            store_neighbours(arrays, shown, wins, trials)
            doublings[0] += extend_horizon(arrays, step)
            level = settings.log_inverse_deltas[doublings[0]]
            load_neighbours(arrays, shown, level, wins, trials, is_open)
            pass_due = True
        listed = shown_id[row]
        for position in range(shown):
            displayed[position] = lists[listed, position]
            clicked[position] = clicks[row, position]

        base_off = False
        told = base_id[row]
        for place in range(items):
            base_off = base_off or bases[told, place] != base[place]
        reason, place = judge(arrays, displayed, is_open, parity, level, exchanged)

        hidden = -1
        drawn_off = False
        if seeded:
            word = first_word(exchange_key, step)
            exchange_neighbours(base, is_open, word, parity, drawn, scratch)
            if items > shown and (shown - parity) & 1 == 1:
                challenge = first_word(challenge_key, step)
                hidden = choose_challenger(arrays, shown, level, challenge)
                if hidden >= 0 and coin(challenge, _CHALLENGE_COIN):
                    drawn[shown - 1] = hidden
                if displayed[shown - 1] != base[shown - 1]:
                    for below in range(shown, items):
                        if base[below] == displayed[shown - 1]:
                            hidden = base[shown - 1]
            for position in range(shown):
                drawn_off = drawn_off or drawn[position] != displayed[position]

        departs = base_off or reason != _FINE
        if departs or drawn_off:
            kept = slips.counts[0]
            if kept < slips.rows.shape[0]:
                slips.rows[kept, 0] = row
                slips.rows[kept, 1] = base_off
                slips.rows[kept, 2] = reason
                slips.rows[kept, 3] = place
                slips.rows[kept, 4] = drawn_off
                slips.base[kept, :] = base
                slips.drawn[kept, :] = drawn
                slips.counts[0] = kept + 1
            slips.counts[1] += departs
            slips.counts[2] += drawn_off

        if reason == _FINE:
            if learn_neighbours(wins, trials, is_open, exchanged, clicked, parity, level, freeze):
                pass_due = True
        else:
            store_neighbours(arrays, shown, wins, trials)
            learn_any(arrays, displayed, clicked, parity, level, freeze)
            load_neighbours(arrays, shown, level, wins, trials, is_open)
            pass_due = True
        if hidden >= 0 and clicked[shown - 1]:
            learn_hidden(arrays, displayed[shown - 1], hidden, level, freeze)
            pass_due = True
        if pass_due:
            store_neighbours(arrays, shown, wins, trials)
            pass_due = promote(arrays, shown, level)
            if pass_due:
                load_neighbours(arrays, shown, level, wins, trials, is_open)

    store_neighbours(arrays, shown, wins, trials)


@njit(cache=True)
def count_inversions(lists, attraction):
    """|V| of each list of items, -1 for a list that begins with -1."""
    found = np.full(lists.shape[0], -1, dtype=np.int64)
    for row in range(lists.shape[0]):
        if lists.shape[1] and lists[row, 0] < 0:
            continue
        count = 0
        for upper in range(lists.shape[1]):
            value = attraction[lists[row, upper]]
            for lower in range(upper + 1, lists.shape[1]):
                count += value < attraction[lists[row, lower]]
        found[row] = count
    return found


@njit(cache=True)
def number_lists(table):
    """Number the distinct rows of a table in the order of their first one; and those rows."""
    rows, width = table.shape
    size = 16
    while size < 2 * rows:
        size *= 2
    slots = np.full(size, -1, dtype=np.int32)
    number = np.empty(rows, dtype=np.int32)
    firsts = np.empty(rows, dtype=np.int64)
    mask = np.uint64(size - 1)
    count = 0
    for row in range(rows):
        value = np.uint64(width)
        for place in range(width):
            value = (value ^ np.uint64(table[row, place])) * _WORD
            value ^= value >> _SHIFT
        slot = value & mask
        while True:
            known = slots[slot]
            if known < 0:
                slots[slot] = count
                firsts[count] = row
                number[row] = count
                count += 1
                break
            same = True
            for place in range(width):
                if table[firsts[known], place] != table[row, place]:
                    same = False
                    break
            if same:
                number[row] = known
                break
            slot = (slot + np.uint64(1)) & mask
    return number, firsts[:count].copy()
