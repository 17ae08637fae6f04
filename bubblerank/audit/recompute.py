"""Recompute: every display must be the one that the seed draws, and in a simulation every click.

With the true problem of a simulation the whole closed loop runs again, for any ranker. Without
it, BubbleRank's lists are drawn again by the coins, from the clicks that the displays tell.
"""

from collections.abc import Sequence

import numpy as np

from bubblerank.audit.finding import Outcome, as_text
from bubblerank.audit.history import History
from bubblerank.audit.replaying import Slip
from bubblerank.audit.rows import Chunk
from bubblerank.audit.settings import BUBBLERANK, MATCH, MODEL, REPLAY, AuditSettings
from bubblerank.closed_loop import Displays, advance_compiled, advance_reference, begin
from bubblerank.config import RankerConfig
from bubblerank.rankers import RANKER_NAMES
from bubblerank.simulation import make_experiment

CHECK = "recompute"
CHUNK_STEPS = 65_536


def lacking(history: History, settings: AuditSettings) -> str | None:
    """The input that this check lacks for a history, or None."""
    if settings.seed is None:
        return "the seed: run.json or --seed"
    if settings.command == REPLAY and settings.feedback not in (MATCH, MODEL):
        return "lists of its own: a replay with feedback logged shows the log's"
    if history.key.ranker not in RANKER_NAMES:
        return f"a ranker that can be run again, {history.key.ranker} is not ours"
    if settings.config is None:
        return "the horizon or delta: run.json, --horizon or --delta"
    if history.key.ranker != BUBBLERANK and not in_closed_loop(history, settings):
        return "run.json of a simulation and its own --problems, for rankers but bubblerank"
    return None


def in_closed_loop(history: History, settings: AuditSettings) -> bool:
    """Whether the whole simulation can be run again."""
    return (
        settings.simulated
        and settings.same_users
        and settings.seed is not None
        and settings.config is not None
        and history.problem is not None
    )


class ClosedLoop:
    """The simulation of one history, run again beside its chunks."""

    def __init__(self, outcome: Outcome, history: History, settings: AuditSettings) -> None:
        problem, config = history.problem, settings.config
        if problem is None or config is None or settings.seed is None:
            raise ValueError("a closed loop needs the problem, the ranker's settings and the seed")
        key = history.key
        self._outcome, self._history = outcome, history
        self._experiment = make_experiment(
            problem, key.ranker, _positions(config, history), key.run, settings.seed, 1
        )
        self._progress = begin(self._experiment)
        self._advance = advance_reference if settings.readable else advance_compiled
        known = history.displays if settings.steps is None else settings.steps
        self._last = min(known, history.last_step)
        self._first = 1
        self._drawn = self._next()

    def _next(self) -> Displays:
        steps = max(0, min(CHUNK_STEPS, self._last - self._first + 1))
        advance = self._advance(self._experiment, self._progress, steps, displays=True)
        self._progress = advance.progress
        if advance.displays is None:
            raise ValueError("a closed loop gave no displays")
        return advance.displays

    def feed(self, chunk: Chunk) -> None:
        """Compare the next rows."""
        steps = chunk.rows.step
        beyond = (steps < 1) | (steps > self._last)
        for row in np.flatnonzero(beyond)[:20].tolist():
            self._outcome.fail(
                int(steps[row]), f"steps 1 to {self._last}", f"step {steps[row]}", failed=0
            )
        self._outcome.checked += len(chunk)
        self._outcome.failed += int(beyond.sum())
        at, end = int((steps < 1).sum()), int(np.searchsorted(steps, self._last, side="right"))
        while at < end:
            while int(steps[at]) >= self._first + CHUNK_STEPS:
                self._first += CHUNK_STEPS
                self._drawn = self._next()
            upto = int(np.searchsorted(steps, self._first + CHUNK_STEPS, side="left"))
            self._compare(chunk, at, min(upto, end))
            at = min(upto, end)

    def _compare(self, chunk: Chunk, first: int, last: int) -> None:
        rows, drawn = chunk.rows, self._drawn
        steps = rows.step[first:last]
        places = steps - self._first
        lists = rows.shown[rows.shown_id[first:last]]
        wrong = (lists != drawn.displayed[places]).any(axis=1)
        wrong |= (rows.clicks[first:last] != drawn.clicked[places]).any(axis=1)
        wrong |= (rows.bases[rows.base_id[first:last]] != drawn.base[places]).any(axis=1)
        wrong |= ~chunk.clicks_fit[first:last]
        self._outcome.failed += int(wrong.sum())
        for row in np.flatnonzero(wrong)[:20].tolist():
            self._tell(chunk, first + row, int(places[row]))

    def _tell(self, chunk: Chunk, row: int, place: int) -> None:
        items, drawn, rows = self._history.items, self._drawn, chunk.rows
        expected, actual = [], []
        displayed = tuple(items[item] for item in drawn.displayed[place])
        base = tuple(items[item] for item in drawn.base[place])
        if displayed != chunk.shown_names(row):
            expected.append(f"displayed {as_text(displayed)}")
            actual.append(f"displayed {as_text(chunk.shown_names(row))}")
        if base != chunk.base_names(row):
            expected.append(f"base {as_text(base)}")
            actual.append(f"base {as_text(chunk.base_names(row))}")
        if not np.array_equal(rows.clicks[row], drawn.clicked[place]):
            expected.append(f"clicks {_marks(drawn.clicked[place].tolist())}")
            actual.append(f"clicks {_marks(rows.clicks[row].tolist())}")
        if not chunk.clicks_fit[row]:
            actual.append("clicks of another number than positions")
        self._outcome.fail(int(rows.step[row]), "; ".join(expected), "; ".join(actual), failed=0)


def tell_slips(outcome: Outcome, history: History, chunk: Chunk, slips: Sequence[Slip]) -> None:
    """Findings of rows that the coins draw otherwise; they have been counted already."""
    for slip in slips:
        if slip.drawn is not None:
            drawn = as_text(history.items[item] for item in slip.drawn)
            outcome.fail(
                int(chunk.rows.step[slip.row]),
                f"displayed {drawn}, which the seed draws",
                f"displayed {as_text(chunk.shown_names(slip.row))}",
                failed=0,
            )


def _positions(config: RankerConfig, history: History) -> RankerConfig:
    return config.with_positions(history.shown)


def _marks(clicks: Sequence[int]) -> str:
    return "".join("1" if click else "0" for click in clicks)
