"""Logged sessions through BubbleRank, compiled: ``bubblerank.stream.feedback`` to the bit."""

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

Ints = npt.NDArray[np.int64]


class Log(NamedTuple):
    """Sessions in stepping order. lists: the distinct lists as item indexes, -1 for unknown.

    A list that cannot be shown (another length) has -1 in its first place. Steps are -1 where
    the log tells none.
    """

    lists: Ints
    list_id: npt.NDArray[np.int32]
    clicks: npt.NDArray[np.uint8]
    step: Ints


class Verdicts(NamedTuple):
    """For each session the step in which it was consumed (0: off policy) and the base it met.

    coins: pairs that could have been exchanged, pairs that were.
    """

    step: Ints
    base: npt.NDArray[np.int16]
    coins: Ints


def make_verdicts(sessions: int, items: int) -> Verdicts:
    """Room for the verdicts on so many sessions."""
    return Verdicts(
        step=np.zeros(sessions, dtype=np.int64),
        base=np.zeros((sessions, items), dtype=np.int16),
        coins=np.zeros(2, dtype=np.int64),
    )


@njit
def recognise(base, is_open, parity, displayed, exchanged):
    """Which pairs of this parity a list exchanges; whether the positions before the last fit."""
    shown = displayed.size
    if parity == 1 and displayed[0] != base[0]:
        return False
    for upper in range(parity, shown - 1, 2):
        above, below = displayed[upper], displayed[upper + 1]
        same = above == base[upper] and below == base[upper + 1]
        exchanged[upper] = not same
        if not same and not (is_open[upper] and above == base[upper + 1] and below == base[upper]):
            return False
    return True


@njit
def recognise_last(arrays, shown, parity, last, level):
    """Whether the item at a last position that is in no pair may stand there."""
    base = arrays.base
    if last == base[shown - 1]:
        return True
    if base.size == shown:
        return False
    above = base[shown - 1]
    for place in range(shown, base.size):
        if base[place] == last:
            return not beats(arrays.wins[above, last], arrays.trials[above, last], level)
    return False


@njit(cache=True)
def replay(arrays, settings, exchange_key, challenge_key, log, verdicts, matching):
    """Consume what may be consumed, session by session.

    matching: only a list that the ranker's own coins draw; else any list that it could draw.
    """
    base = arrays.base
    shown, items = log.lists.shape[1], base.size
    lists, list_id, logged_clicks, logged_step = log.lists, log.list_id, log.clicks, log.step
    displayed = np.empty(shown, dtype=np.int64)
    drawn = np.empty(shown, dtype=np.int64)
    clicked = np.zeros(shown, dtype=np.int64)
    exchanged = np.zeros(shown, dtype=np.bool_)
    wins = np.zeros(shown, dtype=np.int64)
    trials = np.zeros(shown, dtype=np.int64)
    is_open = np.zeros(shown, dtype=np.bool_)
    kept_base = base.copy()
    freeze, doubling = settings.freeze_decided, settings.doubling
    doublings = 0
    level = settings.log_inverse_deltas[0]
    load_neighbours(arrays, shown, level, wins, trials, is_open)
    pass_due = True
    consumed = arrays.clock[0]

    for session in range(list_id.size):
        listed = list_id[session]
        if lists[listed, 0] < 0:
            continue
        for position in range(shown):
            displayed[position] = lists[listed, position]
        step = consumed + 1
        if not matching and logged_step[session] >= 0:
            step = logged_step[session]
        parity = step & 1

        doubled = 0
        if doubling and step > arrays.clock[1]:
            store_neighbours(arrays, shown, wins, trials)
            kept_base[:] = base
            doubled = extend_horizon(arrays, step)
            level = settings.log_inverse_deltas[doublings + doubled]
            load_neighbours(arrays, shown, level, wins, trials, is_open)

        hidden = -1
        challenged = items > shown and (shown - parity) & 1 == 1
        challenge = first_word(challenge_key, step)
        if challenged:
            hidden = choose_challenger(arrays, shown, level, challenge)
        fits = True
        if matching:
            first = first_word(exchange_key, step)
            exchange_neighbours(base, is_open, first, parity, drawn, exchanged)
            if hidden >= 0 and coin(challenge, _CHALLENGE_COIN):
                drawn[shown - 1] = hidden
                hidden = base[shown - 1]
            for position in range(shown):
                fits = fits and drawn[position] == displayed[position]
        else:
            fits = recognise(base, is_open, parity, displayed, exchanged)
            if fits and (shown - parity) & 1 == 1:
                fits = recognise_last(arrays, shown, parity, displayed[shown - 1], level)
                if fits and challenged and displayed[shown - 1] != base[shown - 1]:
                    hidden = base[shown - 1]

        if not fits:
            if doubled:
                base[:] = kept_base
                arrays.clock[1] >>= doubled
                level = settings.log_inverse_deltas[doublings]
                load_neighbours(arrays, shown, level, wins, trials, is_open)
            continue

        if doubled:
            doublings += doubled
            pass_due = True
        verdicts.step[session] = step
        for place in range(items):
            verdicts.base[session, place] = base[place]
        for upper in range(parity, shown - 1, 2):
            if is_open[upper]:
                verdicts.coins[0] += 1
                verdicts.coins[1] += exchanged[upper]
        for position in range(shown):
            clicked[position] = logged_clicks[session, position]
        if learn_neighbours(wins, trials, is_open, exchanged, clicked, parity, level, freeze):
            pass_due = True
        if hidden >= 0 and clicked[shown - 1]:
            learn_hidden(arrays, displayed[shown - 1], hidden, level, freeze)
            pass_due = True
        consumed += 1
        if pass_due:
            store_neighbours(arrays, shown, wins, trials)
            pass_due = promote(arrays, shown, level)
            if pass_due:
                load_neighbours(arrays, shown, level, wins, trials, is_open)

    store_neighbours(arrays, shown, wins, trials)
    arrays.clock[0] = consumed
