"""What the audit finds: rows of the finding schema, and the outcome of one check."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

VIOLATION, WARNING, NOTE = "violation", "warning", "note"
MOST_FINDINGS = 20
"""Findings that are written of one check on one history; all are counted."""


class Key(NamedTuple):
    """Whose displays: one learner."""

    ranker: str
    query: str
    run: int


class Finding(NamedTuple):
    """One row of `findings/`; ranker, query, run and step are None where none is concerned."""

    check: str
    severity: str
    ranker: str | None
    query: str | None
    run: int | None
    step: int | None
    expected: str
    actual: str


@dataclass
class Outcome:
    """What one check says of one history, or of a whole run.

    checked: how many rows (or facts) were looked at; failed: how many of them are wrong;
    missing: the input that the check lacked, if it did.
    """

    check: str
    key: Key | None = None
    checked: int = 0
    failed: int = 0
    missing: str | None = None
    findings: list[Finding] = field(default_factory=list)

    def fail(self, step: int | None, expected: str, actual: str, failed: int = 1) -> None:
        """Count a failure, and keep it as a finding if there are not too many yet."""
        self.failed += failed
        self.tell(VIOLATION, step, expected, actual)

    def tell(self, severity: str, step: int | None, expected: str, actual: str) -> None:
        """Keep a finding without counting it."""
        if len(self.findings) < MOST_FINDINGS:
            ranker, query, run = self.key or (None, None, None)
            self.findings.append(
                Finding(self.check, severity, ranker, query, run, step, expected, actual)
            )


def as_text(items: Iterable[str]) -> str:
    """A list as findings show it."""
    return f"[{' '.join(items)}]"
