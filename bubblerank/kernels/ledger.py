"""Metrics and displayed lists as compiled rankers write them down."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bubblerank.kernels.world import inversions_of, ndcg_of, reward_of
from bubblerank.metrics import FIXED_POINT, Checkpoint, Scorecard, checkpoint

Ints = npt.NDArray[np.int64]

_SCALE = float(FIXED_POINT)
_LIMB_BITS = 32
_LIMB_MASK = (1 << _LIMB_BITS) - 1


class Ledger(NamedTuple):
    """The exact sums of a scorecard, and a row for each checkpoint that is reached.

    totals: regret, reward and NDCG, each as a high and a low 32-bit limb of units of 2^-52.
    counts: clicks, violations.
    pending: the list shown last, and in ``pending_count`` how often it is not yet summed.
    """

    totals: Ints
    counts: Ints
    pending: Ints
    pending_count: Ints
    checkpoints: Ints
    reached: Ints
    rows: Ints
    row_ndcg: npt.NDArray[np.float64]


class Recorder(NamedTuple):
    """Room for the displays of consecutive steps; empty when nobody asked for them."""

    displayed: npt.NDArray[np.int16]
    clicked: npt.NDArray[np.uint8]
    base: npt.NDArray[np.int16]


def make_ledger(card: Scorecard, shown: int, checkpoints: list[int]) -> Ledger:
    """A ledger that goes on from a scorecard and writes rows at these ascending steps."""
    sums = (card.regret, card.reward, card.ndcg)
    return Ledger(
        totals=np.array([[s >> _LIMB_BITS, s & _LIMB_MASK] for s in sums], dtype=np.int64),
        counts=np.array([card.clicks, card.violations], dtype=np.int64),
        pending=np.full(shown, -1, dtype=np.int64),
        pending_count=np.zeros(1, dtype=np.int64),
        checkpoints=np.array(checkpoints, dtype=np.int64),
        reached=np.zeros(1, dtype=np.int64),
        rows=np.zeros((len(checkpoints), 10), dtype=np.int64),
        row_ndcg=np.zeros(len(checkpoints), dtype=np.float64),
    )


def make_recorder(steps: int, shown: int, items: int) -> Recorder:
    """Room for ``steps`` displays."""
    return Recorder(
        displayed=np.zeros((steps, shown), dtype=np.int16),
        clicked=np.zeros((steps, shown), dtype=np.uint8),
        base=np.zeros((steps, items), dtype=np.int16),
    )


def read_scorecard(totals: Ints, counts: Ints) -> Scorecard:
    """The scorecard that limbs and counts stand for."""
    regret, reward, ndcg = ((int(high) << _LIMB_BITS) + int(low) for high, low in totals)
    return Scorecard(regret, reward, ndcg, int(counts[0]), int(counts[1]))


def read_checkpoints(ledger: Ledger) -> list[Checkpoint]:
    """The rows of the checkpoints reached so far."""
    found = []
    for row, ndcg in zip(ledger.rows, ledger.row_ndcg, strict=True):
        if row[0]:
            card = read_scorecard(row[1:7].reshape(3, 2), row[7:9])
            found.append(checkpoint(card, int(row[0]), float(ndcg), int(row[9])))
    return found


@njit(inline="always")
def _add(totals, place, value, count):
    fixed = np.int64(value * _SCALE)
    totals[place, 0] += (fixed >> _LIMB_BITS) * count
    totals[place, 1] += (fixed & _LIMB_MASK) * count
    totals[place, 0] += totals[place, 1] >> _LIMB_BITS
    totals[place, 1] &= _LIMB_MASK


@njit
def add_steps(ledger, world, displayed, count):
    """Count ``count`` steps in which this list was shown."""
    reward = reward_of(world, displayed)
    _add(ledger.totals, 0, world.best_reward - reward, count)
    _add(ledger.totals, 1, reward, count)
    _add(ledger.totals, 2, ndcg_of(world, displayed), count)
    if 2 * inversions_of(world, displayed) > world.twice_allowed_inversions:
        ledger.counts[1] += count


@njit
def settle(ledger, world):
    """Sum the steps of the pending list."""
    if ledger.pending_count[0] > 0:
        add_steps(ledger, world, ledger.pending, ledger.pending_count[0])
        ledger.pending_count[0] = 0


@njit(inline="always")
def is_pending(pending, displayed):
    """Whether a list is the pending one, so that one more step of it need not be evaluated."""
    for position in range(displayed.size):
        if pending[position] != displayed[position]:
            return False
    return True


@njit
def make_pending(ledger, world, displayed):
    """Sum the steps of the pending list, and wait for how often this one is shown."""
    settle(ledger, world)
    for position in range(displayed.size):
        ledger.pending[position] = displayed[position]


@njit
def next_checkpoint(ledger):
    """The next step that a row is due at; 0 when none is left."""
    place = ledger.reached[0]
    return ledger.checkpoints[place] if place < ledger.checkpoints.size else 0


@njit
def write_row(ledger, world, step, displayed):
    """Write the row of a checkpoint; everything up to the step must have been counted."""
    settle(ledger, world)
    place = ledger.reached[0]
    row = ledger.rows[place]
    row[0] = step
    for total in range(3):
        row[1 + 2 * total] = ledger.totals[total, 0]
        row[2 + 2 * total] = ledger.totals[total, 1]
    row[7] = ledger.counts[0]
    row[8] = ledger.counts[1]
    row[9] = inversions_of(world, displayed)
    ledger.row_ndcg[place] = ndcg_of(world, displayed)
    ledger.reached[0] = place + 1


@njit
def record(recorder, place, displayed, clicked, base):
    """Keep a display."""
    for position in range(displayed.size):
        recorder.displayed[place, position] = displayed[position]
        recorder.clicked[place, position] = clicked[position]
    for position in range(base.size):
        recorder.base[place, position] = base[position]
