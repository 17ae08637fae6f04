"""All checks on the displays of one learner."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bubblerank.audit import completeness, recompute, statistics, structure
from bubblerank.audit.finding import NOTE, Finding, Key, Outcome
from bubblerank.audit.history import History
from bubblerank.audit.replaying import CompiledReplay, ReadableReplay, Replayer
from bubblerank.audit.rows import Chunk
from bubblerank.audit.safety import Exposure, SafetyCounter
from bubblerank.audit.settings import BUBBLERANK, AuditSettings
from bubblerank.coins import stream_key
from bubblerank.config import RankerConfig
from bubblerank.rankers import RANKER_NAMES, bubble
from bubblerank.state_codec import decode
from bubblerank.stream.resume import start_from_statistic


@dataclass(frozen=True)
class HistoryAudit:
    """What all checks say of one history, and how it treated its users."""

    key: Key
    outcomes: dict[str, Outcome]
    exposure: Exposure

    def findings(self) -> list[Finding]:
        """All findings, with a remark where some were only counted."""
        found = []
        for outcome in self.outcomes.values():
            found += outcome.findings
            told = len({finding.step for finding in outcome.findings})
            if outcome.failed > told:
                more = f"{outcome.failed} failures in all, the first {told} are told"
                found.append(
                    Finding(
                        outcome.check,
                        NOTE,
                        self.key.ranker,
                        self.key.query,
                        self.key.run,
                        None,
                        "no failure",
                        more,
                    )
                )
        return found


def audit_history(history: History, settings: AuditSettings) -> HistoryAudit:
    """Pass once through a history, with every check that is wanted."""
    return _Pass(history, settings).run()


class _Pass:
    def __init__(self, history: History, settings: AuditSettings) -> None:
        self._history, self._settings = history, settings
        self._outcomes = {name: Outcome(name, history.key) for name in settings.checks}
        self._unwanted = Outcome("unwanted", history.key)
        self._replayer = self._make_replayer()
        self._loop = self._make_loop()
        self._safety = SafetyCounter(self._outcome("safety"), history, settings.readable)
        self._steps = completeness.StepCounter(self._outcome("completeness"), history, settings)
        self._marks = [(int(row["step"]), row) for row in history.statistics]
        self._consumed = int(history.start["step"]) if history.start is not None else 0

    def run(self) -> HistoryAudit:
        history = self._history
        for chunk in history.chunks():
            if "completeness" in self._outcomes:
                self._steps.feed(chunk)
            if "structure" in self._outcomes:
                structure.check_lists(self._outcome("structure"), history, chunk)
                self._check_by_ranker(chunk)
            self._safety.feed(chunk)
            if self._loop is not None:
                self._loop.feed(chunk)
            if self._replayer is not None:
                self._replay(self._replayer, chunk)
        if "completeness" in self._outcomes:
            self._steps.close()
        if history.displays and not self._safety.has_attractions:
            self._outcome("safety").missing = _no_attractions(history)
        elif self._safety.unmeasured:
            self._outcome("safety").missing = "lists of known items, as many as are shown"
        self._finish_statistics()
        return HistoryAudit(history.key, self._outcomes, self._safety.exposure)

    def _check_by_ranker(self, chunk: Chunk) -> None:
        """What can be told of a ranker's lists without replaying it."""
        ranker, outcome = self._history.key.ranker, self._outcome("structure")
        if ranker == BUBBLERANK and outcome.missing and self._history.shown:
            structure.check_neighbours(outcome, self._history, chunk)
        elif ranker in RANKER_NAMES and ranker != BUBBLERANK:
            structure.check_base_stays(outcome, self._history, chunk)

    def _outcome(self, name: str) -> Outcome:
        return self._outcomes.get(name, self._unwanted)

    def _make_replayer(self) -> Replayer | None:
        """BubbleRank from its first step, where that is wanted and everything is known."""
        history, settings = self._history, self._settings
        replayed = {"structure", "statistics", "recompute"} & self._outcomes.keys()
        if history.key.ranker != BUBBLERANK or not replayed or not history.displays:
            return None
        lacks = self._replay_lacks()
        if lacks is not None:
            self._outcome("structure").missing = lacks
            self._outcome("statistics").missing = lacks
            return None
        config = (settings.config or RankerConfig()).with_positions(history.shown)
        key = None
        if settings.seed is not None:
            key = stream_key(settings.seed, history.key.query, history.key.run)
        start = bubble.start(len(history.items), config)
        if history.start is not None:
            start = decode(start_from_statistic(history.start, config).state, config)[1]
        kind = ReadableReplay if settings.readable else CompiledReplay
        return kind(start, config, key)

    def _replay_lacks(self) -> str | None:
        history, settings = self._history, self._settings
        if settings.config is None:
            return "the horizon or delta: run.json, --horizon or --delta"
        if not history.items or not history.shown:
            return "lists that hold items"
        if len(history.items) > history.shown and settings.seed is None:
            return "the seed, as hidden items challenge the last position: run.json or --seed"
        return None

    def _make_loop(self) -> recompute.ClosedLoop | None:
        history, settings = self._history, self._settings
        if "recompute" not in self._outcomes or not history.displays:
            return None
        outcome = self._outcome("recompute")
        outcome.missing = recompute.lacking(history, settings)
        if outcome.missing or not recompute.in_closed_loop(history, settings):
            return None
        if history.problem is not None and history.problem.items != history.items:
            outcome.fail(
                None,
                f"the problem's list {' '.join(history.problem.items)} displayed first",
                f"{' '.join(history.items)}",
            )
            return None
        return recompute.ClosedLoop(outcome, history, settings)

    def _replay(self, replayer: Replayer, chunk: Chunk) -> None:
        """Replay a chunk, stopping where `statistics/` tells what should be known by then."""
        taken = np.cumsum(~chunk.doubled)
        at = 0
        while self._marks:
            step, row = self._marks[0]
            if self._settings.gaps_allowed:
                end = int(np.searchsorted(taken, step - self._consumed, side="right"))
                reached = self._consumed + int(taken[-1]) >= step
            else:
                end = int(np.searchsorted(chunk.rows.step, step, side="right"))
                reached = int(chunk.rows.step[-1]) >= step
            if not reached:
                break
            self._feed(replayer, chunk, at, max(at, end))
            at = max(at, end)
            self._compare(row)
            self._marks.pop(0)
        self._feed(replayer, chunk, at, len(chunk))
        self._consumed += int(taken[-1])

    def _feed(self, replayer: Replayer, chunk: Chunk, first: int, last: int) -> None:
        if first >= last:
            return
        found = replayer.feed(chunk.rows, first, last)
        self._outcome("structure").failed += found.structure
        structure.tell_slips(self._outcome("structure"), self._history, chunk, found.slips)
        outcome = self._outcome("recompute")
        if self._loop is None and outcome.missing is None:
            outcome.checked += int(chunk.rows.usable[first:last].sum())
            outcome.failed += found.drawn
            recompute.tell_slips(outcome, self._history, chunk, found.slips)

    def _compare(self, row: Mapping[str, Any]) -> None:
        if self._replayer is not None and "statistics" in self._outcomes:
            config = (self._settings.config or RankerConfig()).with_positions(self._history.shown)
            statistics.compare_state(
                self._outcome("statistics"), self._history, config, row, self._replayer.state()
            )

    def _finish_statistics(self) -> None:
        history, outcome = self._history, self._outcome("statistics")
        if history.key.ranker != BUBBLERANK or outcome.missing:
            return
        if not self._settings.statistics:
            outcome.missing = "statistics/"
        elif not history.statistics:
            outcome.fail(None, "a row of statistics/ for these displays", "none")
        for _, row in self._marks:
            self._compare(row)
        if not history.displays:
            outcome.checked += len(self._marks)


def _no_attractions(history: History) -> str:
    if history.problem is None:
        return "attractions of every query: --problems"
    return "attractions of every item: --problems lacks some"
