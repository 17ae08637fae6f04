"""Do the exchanges of a log look like fair coins? A log that never randomises cannot teach."""

import math
from dataclasses import dataclass

ALARM = 1e-4
"""A log is called unfair when fair coins would look so with a smaller probability."""


@dataclass(frozen=True)
class Fairness:
    """Of ``chances`` pairs that could have been exchanged, ``exchanges`` were."""

    chances: int
    exchanges: int

    @property
    def share(self) -> float:
        """The share of pairs that were exchanged; 0 without any chance."""
        return self.exchanges / self.chances if self.chances else 0.0

    @property
    def p_value(self) -> float:
        """How likely fair coins are at least as far from one half (normal approximation)."""
        if not self.chances:
            return 1.0
        distance = max(0.0, abs(2 * self.exchanges - self.chances) - 1.0)
        return math.erfc(distance / math.sqrt(2 * self.chances))

    @property
    def warning(self) -> str | None:
        """What to tell the user, where the exchanges are no fair coins."""
        if self.p_value >= ALARM:
            return None
        return (
            f"WARNING: the exchanges in this log are no fair coins: {self.exchanges:,} of "
            f"{self.chances:,} open pairs were exchanged ({self.share:.1%}, fair coins: 50 %; "
            f"p = {self.p_value:.1e}). What position bias taught cannot be told from what users "
            "want: do not trust these statistics, nor a verdict of safety built on them."
        )
