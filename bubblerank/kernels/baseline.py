"""The baseline over many steps, compiled: ``bubblerank.rankers.baseline`` to the bit."""

from dataclasses import replace

import numpy as np
from numba import njit

from bubblerank.config import RankerConfig
from bubblerank.kernels.coins import first_word
from bubblerank.kernels.ledger import (
    Ledger,
    Recorder,
    make_pending,
    next_checkpoint,
    record,
    settle,
    write_row,
)
from bubblerank.kernels.world import World, draw_clicks
from bubblerank.rankers.baseline import BaselineState


@njit(_nrt=False)  # type: ignore[call-overload]
def quiet_steps(displayed, clicked, click, stop, click_key, step, last):
    """Draw the clicks of the steps up to ``last``; compiled without reference counting."""
    clicks = 0
    while step < last:
        step += 1
        clicks += draw_clicks(click, stop, first_word(click_key, step), displayed, clicked)
    return clicks


@njit(cache=True)
def advance(start, world, ledger, recorder, steps):
    """Display R_0 and draw clicks, ``steps`` times."""
    base = np.arange(world.click.shape[1])
    displayed = base[: world.click.shape[0]]
    clicked = np.zeros(displayed.size, dtype=np.int64)
    recording = recorder.displayed.shape[0] > 0
    row_due = next_checkpoint(ledger)
    step, end = start, start + steps
    make_pending(ledger, world, displayed)
    while step < end:
        last = step + 1 if recording else end
        if row_due:
            last = min(last, row_due)
        ledger.counts[0] += quiet_steps(
            displayed, clicked, world.click, world.stop, world.click_key, step, last
        )
        ledger.pending_count[0] += last - step
        step = last
        if recording:
            record(recorder, step - start - 1, displayed, clicked, base)
        if step == row_due:
            write_row(ledger, world, step, displayed)
            row_due = next_checkpoint(ledger)
    settle(ledger, world)


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
