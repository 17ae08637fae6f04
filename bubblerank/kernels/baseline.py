"""The baseline over many steps, compiled: ``bubblerank.rankers.baseline`` to the bit."""

from dataclasses import replace

import numpy as np
from numba import njit

from bubblerank.config import RankerConfig
from bubblerank.kernels.coins import first_word
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
from bubblerank.rankers.baseline import BaselineState


@njit(cache=True)
def advance(start, world, ledger, recorder, steps):
    """Display R_0 and draw clicks, ``steps`` times."""
    click, stop, pending, repeats = world.click, world.stop, ledger.pending, ledger.pending_count
    base = np.arange(world.click.shape[1])
    displayed = base[: world.click.shape[0]]
    clicked = np.zeros(displayed.size, dtype=np.int64)
    recording = recorder.displayed.shape[0] > 0
    row_due = next_checkpoint(ledger)
    clicks = 0

    for done in range(steps):
        step = start + done + 1
        user = first_word(world.click_key, step)
        clicks += draw_clicks(click, stop, user, displayed, clicked)
        if recording:
            record(recorder, done, displayed, clicked, base)
        if not is_pending(pending, displayed):
            make_pending(ledger, world, displayed)
        repeats[0] += 1
        if step == row_due:
            ledger.counts[0] += clicks
            clicks = 0
            write_row(ledger, world, step, displayed)
            row_due = next_checkpoint(ledger)
    settle(ledger, world)
    ledger.counts[0] += clicks


def advance_state(
    state: BaselineState,
    config: RankerConfig,
    world: World,
    ledger: Ledger,
    recorder: Recorder,
    steps: int,
) -> BaselineState:
    """The state after ``steps`` more steps in this world."""
    advance(state.step, world, ledger, recorder, steps)
    return replace(state, step=state.step + steps)
