"""Completeness: every step once, none missing, none invented."""

import numpy as np

from bubblerank.audit.finding import WARNING, Outcome, as_text
from bubblerank.audit.history import MOST_STEPS, History
from bubblerank.audit.rows import Chunk
from bubblerank.audit.settings import AuditSettings

CHECK = "completeness"


class StepCounter:
    """Follows the steps of one history through its chunks."""

    def __init__(self, outcome: Outcome, history: History, settings: AuditSettings) -> None:
        self._outcome, self._history = outcome, history
        before = int(history.start["step"]) if history.start is not None else 0
        self._first = before
        self._expected = self._last_expected(settings)
        self._gaps_allowed = settings.gaps_allowed
        self._gaps: list[tuple[int, int]] = []
        self._missing = 0
        self._last = before
        self._rows = 0

    def _last_expected(self, settings: AuditSettings) -> int | None:
        told = [int(row["step"]) for row in self._history.statistics]
        if told:
            return max(told)
        return settings.steps

    def feed(self, chunk: Chunk) -> None:
        """Take the steps of the next rows."""
        steps, outcome = chunk.rows.step, self._outcome
        outcome.checked += len(steps)
        for row in np.flatnonzero(chunk.doubled)[:20].tolist():
            outcome.fail(int(steps[row]), "one row for a step", _twice(chunk, row), failed=0)
        outcome.failed += int(chunk.doubled.sum())
        strange = (steps < 1) | (steps > MOST_STEPS)
        for row in np.flatnonzero(strange)[:20].tolist():
            step = int(steps[row])
            outcome.fail(step, f"a step from 1 to {MOST_STEPS}", f"step {step}", failed=0)
        outcome.failed += int(strange.sum())
        unique = steps[~chunk.doubled & ~strange]
        if len(unique) == 0:
            return
        self._rows += len(unique)
        jumps = np.diff(unique, prepend=self._last)
        self._missing += int((jumps - 1).clip(0).sum())
        for row in np.flatnonzero(jumps > 1)[: 20 - len(self._gaps)].tolist():
            self._gaps.append((int(unique[row] - jumps[row]) + 1, int(unique[row]) - 1))
        self._last = int(unique[-1])

    def close(self) -> None:
        """Tell gaps, and a beginning or an end that lacks."""
        expected, outcome = self._expected, self._outcome
        if self._gaps_allowed:
            if expected is not None and self._rows != expected - self._first:
                self._tell_gaps()
                outcome.fail(
                    None,
                    f"{expected - self._first} displays, as many sessions as were consumed",
                    f"{self._rows} displays",
                    failed=abs(self._rows - expected + self._first),
                )
            elif expected is None and self._gaps:
                first, last = self._gaps[0]
                outcome.tell(
                    WARNING,
                    first,
                    "steps without gaps, or statistics that tell how many were consumed",
                    f"{self._missing} steps are not there, the first {_span(first, last)}",
                )
            return
        self._tell_gaps()
        outcome.failed += self._missing
        if expected is not None and self._last < expected:
            missing = _span(self._last + 1, expected)
            outcome.fail(
                self._last + 1,
                f"steps up to {expected}",
                f"{missing} missing",
                failed=expected - self._last,
            )
        elif expected is not None and self._last > expected:
            beyond = _span(expected + 1, self._last)
            outcome.fail(expected + 1, f"steps up to {expected}", f"{beyond} beyond the end")

    def _tell_gaps(self) -> None:
        for first, last in self._gaps:
            self._outcome.fail(first, f"{_span(first, last)}", "missing", failed=0)


def _span(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _twice(chunk: Chunk, row: int) -> str:
    if not chunk.differs[row]:
        return "the same row twice"
    one, other = as_text(chunk.shown_names(row - 1)), as_text(chunk.shown_names(row))
    return f"two histories under one key: displayed {one} and {other}, or other clicks or base"
