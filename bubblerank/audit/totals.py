"""The audit of many histories, added up: verdicts, first failures, violations by ranker."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bubblerank.audit.audit_history import HistoryAudit
from bubblerank.audit.checks import CHECK_NAMES
from bubblerank.audit.finding import VIOLATION, Finding, Outcome

PASS, FAIL, NOT_CHECKED = "PASS", "FAIL", "NOT CHECKED"
FIRST = 100
"""Findings that are kept for the terminal and for `audit.json`, per check."""


@dataclass
class CheckTotal:
    """One check over all histories; missing: how many histories lacked which input."""

    histories: int = 0
    checked: int = 0
    failed: int = 0
    failing: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    first: list[Finding] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Take one outcome."""
        self.histories += 1
        self.checked += outcome.checked
        self.failed += outcome.failed
        self.failing += outcome.failed > 0
        if outcome.missing:
            self.missing[outcome.missing] += 1
        self._keep(outcome.findings)

    def merge(self, other: "CheckTotal") -> None:
        """Take another total."""
        self.histories += other.histories
        self.checked += other.checked
        self.failed += other.failed
        self.failing += other.failing
        self.missing.update(other.missing)
        self._keep(other.first)

    def _keep(self, findings: Iterable[Finding]) -> None:
        new = [finding for finding in findings if finding.severity == VIOLATION]
        if new:
            self.first = sorted([*self.first, *new], key=_order)[:FIRST]

    @property
    def status(self) -> str:
        """FAIL with any failure; PASS only if all histories had what the check needs."""
        if self.failed:
            return FAIL
        return NOT_CHECKED if self.missing or not self.checked else PASS


@dataclass
class RankerTotal:
    """How one ranker treated users, over all its histories.

    violations: by prefix (0: in all). measured_safety: histories with attractions.
    """

    histories: int = 0
    displays: int = 0
    measured_safety: int = 0
    violations: Counter[int] = field(default_factory=Counter)
    unsafe: int = 0
    first_step: int | None = None
    farthest: int = 0
    far_sum: int = 0
    measured: int = 0
    worst: list[tuple[int, str, int, int | None, dict[int, int]]] = field(default_factory=list)

    def merge(self, other: "RankerTotal") -> None:
        """Take another total."""
        for name in ("histories", "displays", "measured_safety", "unsafe", "far_sum", "measured"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.violations.update(other.violations)
        steps = [step for step in (self.first_step, other.first_step) if step is not None]
        self.first_step = min(steps, default=None)
        self.farthest = max(self.farthest, other.farthest)
        self.worst = sorted([*self.worst, *other.worst], key=lambda one: (-one[0], one[1], one[2]))[
            :FIRST
        ]


@dataclass
class Totals:
    """Everything that a verdict needs, whatever the number of histories."""

    checks: dict[str, CheckTotal] = field(default_factory=dict)
    rankers: dict[str, RankerTotal] = field(default_factory=dict)

    def add_outcome(self, outcome: Outcome) -> None:
        """Take an outcome that is about no single history."""
        self.checks.setdefault(outcome.check, CheckTotal()).add(outcome)

    def add(self, audit: HistoryAudit) -> None:
        """Take the audit of one history."""
        for outcome in audit.outcomes.values():
            if outcome.check != "books":
                self.add_outcome(outcome)
        exposure, key = audit.exposure, audit.key
        counts = {k: n for k, n in exposure.violations.items() if audit.outcomes.get("safety")}
        broken = counts.get(0, 0)
        safety = audit.outcomes.get("safety")
        self.rankers.setdefault(key.ranker, RankerTotal()).merge(
            RankerTotal(
                histories=1,
                displays=exposure.displays,
                measured_safety=int(safety is not None and not safety.missing),
                violations=Counter(counts),
                unsafe=int(broken > 0),
                first_step=exposure.first_step,
                farthest=exposure.farthest,
                far_sum=exposure.far_sum,
                measured=exposure.measured,
                worst=[(broken, key.query, key.run, exposure.first_step, counts)] if broken else [],
            )
        )

    def merge(self, other: "Totals") -> None:
        """Take other totals; the order of merging changes nothing."""
        for name, check in other.checks.items():
            self.checks.setdefault(name, CheckTotal()).merge(check)
        for name, ranker in other.rankers.items():
            self.rankers.setdefault(name, RankerTotal()).merge(ranker)

    @property
    def failed(self) -> bool:
        """Whether any check failed."""
        return any(check.failed for check in self.checks.values())

    def verdicts(self, wanted: Sequence[str] = CHECK_NAMES, limit: int = 5) -> list[dict[str, Any]]:
        """A record for each check, in the order of the registry."""
        found = []
        for name in wanted:
            total = self.checks.get(name, CheckTotal())
            found.append(
                {
                    "check": name,
                    "status": total.status,
                    "checked": total.checked,
                    "failed": total.failed,
                    "histories": total.histories,
                    "failing_histories": total.failing,
                    "missing": dict(sorted(total.missing.items())),
                    "first_failures": [finding._asdict() for finding in total.first[:limit]],
                }
            )
        return found

    def exposures(self, limit: int = 5) -> list[dict[str, Any]]:
        """A record for each ranker: violations in the first 100, 1,000, ... steps, and in all."""
        found = []
        for name, total in sorted(self.rankers.items()):
            safe = total.measured_safety > 0
            found.append(
                {
                    "ranker": name,
                    "histories": total.histories,
                    "displays": total.displays,
                    "violations": total.violations[0] if safe else None,
                    "violations_in_first": {
                        str(prefix): count
                        for prefix, count in sorted(total.violations.items())
                        if prefix and safe
                    },
                    "measured_histories": total.measured_safety,
                    "unsafe_histories": total.unsafe if safe else None,
                    "first_violation": total.first_step,
                    "max_displacement": total.farthest,
                    "mean_displacement": total.far_sum / total.measured if total.measured else 0.0,
                    "worst": [
                        {
                            "query": query,
                            "run": run,
                            "violations": broken,
                            "first_violation": first,
                            "violations_in_first": {
                                str(prefix): counts[prefix] for prefix in sorted(counts) if prefix
                            },
                        }
                        for broken, query, run, first, counts in total.worst[:limit]
                    ],
                }
            )
        return found


def _order(finding: Finding) -> tuple[Any, ...]:
    return (
        finding.ranker or "",
        finding.query or "",
        -1 if finding.run is None else finding.run,
        -1 if finding.step is None else finding.step,
        finding.expected,
        finding.actual,
    )
