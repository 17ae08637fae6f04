"""CascadeKL-UCB over many steps, compiled: ``bubblerank.rankers.cascade_klucb`` to the bit.

Only the order of the bounds matters, so a bound is computed only where its order is in doubt.
Let Q = T U. The set T kl(W / T, Q / T) <= b is a convex cone in (W, T, Q, b), so that Q is a
concave and homogeneous function of (W, T, b). From a bound once computed, after w more clicks
in n more observations, and with a larger budget:

    Q(W, T, b) + w  <=  Q(W + w, T + n, b')  <=  Q + Q_W w + Q_T n + Q_b (b' - b)

on the left because Q(w, n, 0) = w, on the right by the tangent plane. Both sides are updated
by additions. While they tell neighbours of the current order apart by more than a few grid
points the order stands; where they do not, both bounds are computed anew, to the grid point.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bubblerank.config import RankerConfig
from bubblerank.kernels.coins import first_word, word
from bubblerank.kernels.kl import CELL, ONE, exploration_budget, upper_bound
from bubblerank.kernels.ledger import (
    Ledger,
    Recorder,
    is_pending,
    make_pending,
    next_checkpoint,
    record,
    settle,
    write_row,
)
from bubblerank.kernels.world import World, draw_clicks
from bubblerank.rankers.cascade_klucb import NEVER_OBSERVED, CascadeState

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

_NEVER = NEVER_OBSERVED / ONE
_DOUBT = 8.0 * CELL
_SLOWLY = 5


class CascadeArrays(NamedTuple):
    """The state, changed in place, and the priorities of the run."""

    clicks: Ints
    observations: Ints
    priority: npt.NDArray[np.uint64]


class Brackets(NamedTuple):
    """low <= Q <= high + per_budget b for each item, with what an observation adds to high.

    trials: T as a float, 1 where T = 0.
    point, computed_at: the last bound that was computed, and its step.
    """

    low: Reals
    high: Reals
    per_budget: Reals
    per_trial: Reals
    per_click: Reals
    trials: Reals
    point: Ints
    computed_at: Ints


@njit
def run_priorities(priority_key, items):
    """The random priority of each item in this run: the words of its step 0."""
    first = first_word(priority_key, 0)
    return np.array([word(first, np.uint64(item)) for item in range(items)])


@njit
def make_brackets(arrays):
    """Nothing known of observed items; items never observed are above all others."""
    items = arrays.clicks.size
    brackets = Brackets(
        np.full(items, -np.inf),
        np.full(items, np.inf),
        np.zeros(items),
        np.zeros(items),
        np.zeros(items),
        np.ones(items),
        np.zeros(items, dtype=np.int64),
        np.zeros(items, dtype=np.int64),
    )
    for item in range(items):
        if arrays.observations[item] > 0:
            brackets.trials[item] = arrays.observations[item]
        else:
            brackets.low[item] = brackets.high[item] = _NEVER
    return brackets


@njit
def compute_bound(arrays, brackets, item, step, budget):
    """Compute a bound to the grid point, and the tangent plane of Q there."""
    if brackets.computed_at[item] == step:
        return
    brackets.computed_at[item] = step
    trials = brackets.trials[item]
    if arrays.observations[item] == 0:
        brackets.point[item] = NEVER_OBSERVED
        return
    guess = (brackets.high[item] + brackets.per_budget[item] * budget) / trials
    point = upper_bound(arrays.clicks[item], arrays.observations[item], budget, guess)
    brackets.point[item] = point
    if budget <= 0.0:
        return
    if point == ONE:
        brackets.low[item] = brackets.high[item] = trials
        brackets.per_budget[item] = brackets.per_click[item] = 0.0
        brackets.per_trial[item] = 1.0
        return
    q = point * CELL
    p = arrays.clicks[item] / trials
    per_budget = q * (1.0 - q) / (q - p)
    ratio = (1.0 - p) / (1.0 - q)
    log_ratio = math.log(ratio)
    brackets.low[item] = q * trials
    brackets.high[item] = (q + 2.0 * CELL) * trials - per_budget * budget
    brackets.per_budget[item] = per_budget
    brackets.per_trial[item] = (ratio - 1.0 - log_ratio) * per_budget
    brackets.per_click[item] = (math.log(q / p) + log_ratio) * per_budget if p > 0.0 else np.inf


@njit(inline="always")
def surely_above(low, high, per_budget, trials, upper, lower, budget):
    """Whether the brackets tell that one item's bound is above the other's."""
    highest = high[lower] + per_budget[lower] * budget
    gap = low[upper] * trials[lower] - highest * trials[upper]
    return gap > _DOUBT * trials[upper] * trials[lower]


@njit(inline="always")
def budget_growth(step):
    """How fast the budget grows; it is concave, so never faster later on."""
    return (1.0 + 3.0 / math.log(step)) / step if step > 2 else 0.0


@njit
def is_above(arrays, brackets, upper, lower, step, budget):
    """Whether one item goes before the other: by bounds, then by priority."""
    low, high, per_budget, trials = (
        brackets.low,
        brackets.high,
        brackets.per_budget,
        brackets.trials,
    )
    if surely_above(low, high, per_budget, trials, upper, lower, budget):
        return True
    if surely_above(low, high, per_budget, trials, lower, upper, budget):
        return False
    compute_bound(arrays, brackets, upper, step, budget)
    compute_bound(arrays, brackets, lower, step, budget)
    if brackets.point[upper] != brackets.point[lower]:
        return brackets.point[upper] > brackets.point[lower]
    if arrays.priority[upper] != arrays.priority[lower]:
        return arrays.priority[upper] < arrays.priority[lower]
    return upper < lower


@njit
def sink_into_place(arrays, brackets, order, place, step, budget):
    """Insert the item of a place into the sorted items before it."""
    item = order[place]
    while place > 0 and is_above(arrays, brackets, item, order[place - 1], step, budget):
        order[place] = order[place - 1]
        place -= 1
    order[place] = item


@njit(_nrt=False)  # type: ignore[call-overload]
def quiet_steps(
    order, displayed, clicked, low, high, per_budget, per_trial, per_click, trials, won, observed,
    click, stop, click_key, step, last, known_step, budget, rate, checked,
):  # fmt: skip
    """Steps up to ``last``, or up to one before which the brackets leave the order in doubt.

    Gives the step reached, the clicks, and whether there is a doubt; ``checked`` where the
    order of the first step is known. Compiled without reference counting, which takes longer
    than the steps themselves.
    """
    clicks = 0
    while step < last:
        if not checked:
            most = budget + rate * (step + 1 - known_step)
            for place in range(1, order.size):
                above, below = order[place - 1], order[place]
                if not surely_above(low, high, per_budget, trials, above, below, most):
                    return step, clicks, True
        checked = False
        step += 1
        clicks += draw_clicks(click, stop, first_word(click_key, step), displayed, clicked)
        for position in range(displayed.size):
            item = displayed[position]
            if observed[item] == 0:
                low[item] = -np.inf
                high[item] = np.inf
            else:
                trials[item] += 1.0
                high[item] += per_trial[item]
            observed[item] += 1
            if clicked[position]:
                won[item] += 1
                low[item] += 1.0
                high[item] += per_click[item]
                break
    return step, clicks, False


@njit(cache=True)
def advance(arrays, start, world, ledger, recorder, steps):
    """Rank, display, draw clicks and learn, ``steps`` times."""
    brackets = make_brackets(arrays)
    shown, items = world.click.shape
    base = np.arange(items)
    order = np.arange(items)
    displayed = order[:shown]
    clicked = np.zeros(shown, dtype=np.int64)
    known_step, budget, rate = 0, 0.0, 0.0
    recording = recorder.displayed.shape[0] > 0
    row_due = next_checkpoint(ledger)
    step, end = start, start + steps
    in_doubt = checked = False

    while step < end:
        if in_doubt or step >= known_step + (known_step >> _SLOWLY):
            known_step = step + 1
            budget, rate = exploration_budget(known_step), budget_growth(known_step)
        if in_doubt:
            for place in range(1, items):
                sink_into_place(arrays, brackets, order, place, known_step, budget)
            checked = True
        if not is_pending(ledger.pending, displayed):
            make_pending(ledger, world, displayed)
        last = step + 1 if recording else min(end, known_step + (known_step >> _SLOWLY))
        if row_due:
            last = min(last, row_due)
        before = step
        step, clicks, in_doubt = quiet_steps(
            order, displayed, clicked, brackets.low, brackets.high, brackets.per_budget,
            brackets.per_trial, brackets.per_click, brackets.trials, arrays.clicks,
            arrays.observations, world.click, world.stop, world.click_key, step, last,
            known_step, budget, rate, checked,
        )  # fmt: skip
        checked = False
        ledger.counts[0] += clicks
        ledger.pending_count[0] += step - before
        if recording and not in_doubt:
            record(recorder, before - start, displayed, clicked, base)
        if step == row_due and step > before:
            write_row(ledger, world, step, displayed)
            row_due = next_checkpoint(ledger)
    settle(ledger, world)


def advance_state(
    state: CascadeState,
    config: RankerConfig,
    world: World,
    ledger: Ledger,
    recorder: Recorder,
    steps: int,
) -> CascadeState:
    """The state after ``steps`` more steps in this world."""
    arrays = CascadeArrays(
        np.array(state.clicks, dtype=np.int64),
        np.array(state.observations, dtype=np.int64),
        run_priorities(world.priority_key, len(state.clicks)),
    )
    advance(arrays, state.step, world, ledger, recorder, steps)
    return CascadeState(
        tuple(arrays.clicks.tolist()), tuple(arrays.observations.tolist()), state.step + steps
    )
