"""Progress of long work on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from commands.output import console, remark

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

LONG_WORK_SECONDS = 2.0
SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Reports how much of some work is done, once it has turned out to be long.

    Used as a context; `update(done)` may be called as often as one likes, from one thread.
    """

    def __init__(
        self,
        what: str,
        total: int | None = None,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Name the work (`steps`) and its size where known; `quiet` reports nothing."""
        self.what, self.total, self.quiet = what, total, quiet
        self._clock = clock
        self._started = clock()
        self._next = self._started + LONG_WORK_SECONDS
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, *, what: str | None = None, total: int | None = None) -> None:
        """Say that `done` is done: of the work, or of the stage of it that `what` names."""
        if self.quiet or self._clock() < self._next:
            return
        if sys.stderr.isatty():
            self._draw(done, what or self.what, total or (None if what else self.total))
        else:
            self._next = self._clock() + SECONDS_BETWEEN_LINES
            remark(f"{self._line(done, what, total)}, {self._clock() - self._started:.0f} s")

    def _line(self, done: int, what: str | None, total: int | None) -> str:
        whole = total or (self.total if what is None else None)
        share = f" of {whole:,} ({done / whole:.0%})" if whole else ""
        return f"{done:,}{share} {what or self.what}"

    def _draw(self, done: int, what: str, total: int | None) -> None:
        if self._bar is None:
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
            self._bar = Bar(
                *columns, TimeRemainingColumn(), console=console(sys.stderr), transient=True
            )
            self._bar.add_task(what, total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, description=what, total=total)
