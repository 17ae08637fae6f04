"""What a synthetic log is like."""

from __future__ import annotations

from dataclasses import dataclass

from bubblerank.errors import raise_all
from bubblerank.problems import POSITION_PARAMETER

MAX_POSITIONS = 64


@dataclass(frozen=True)
class LogSettings:
    """A log of `sessions` sessions; the same settings give the same log, to the byte.

    zipf: query number r is asked in proportion to r ** -zipf. variants: lists that a query
    displays, its production list (most often) and personalised ones. days: the time that the
    log covers. randomised: the production list with neighbours exchanged by fair coins, and
    the step of each session, in place of variants. Rates are shares of sessions: late ones
    arrive minutes after their event time, duplicates come twice, broken ones are no sessions.
    """

    sessions: int
    queries: int
    click_model: str = "PBM"
    positions: int = 10
    variants: int = 4
    zipf: float = 1.0
    days: float = 7.0
    seed: int = 0
    randomised: bool = False
    late_rate: float = 0.0
    duplicate_rate: float = 0.0
    broken_rate: float = 0.0

    def __post_init__(self) -> None:
        complaints = [
            f"{name} must be at least 1, got {getattr(self, name)}"
            for name in ("sessions", "queries", "variants")
            if getattr(self, name) < 1
        ]
        if not 2 <= self.positions <= MAX_POSITIONS:
            complaints.append(f"positions must be 2 to {MAX_POSITIONS}, got {self.positions}")
        if self.click_model not in POSITION_PARAMETER:
            complaints.append(f"click_model must be CM, DCM or PBM, got {self.click_model!r}")
        for name in ("late_rate", "duplicate_rate", "broken_rate"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                complaints.append(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        if not 0.0 <= self.zipf <= 10.0:
            complaints.append(f"zipf must lie in [0, 10], got {self.zipf}")
        if not 0.0 < self.days <= 36_500.0:
            complaints.append(f"days must be above 0, at most 36500, got {self.days}")
        raise_all(complaints)
