"""Safety: the paper's constraint |V(R_t)| <= |V(R_0)| + K/2, and how early it was broken.

V counts the pairs of the displayed list whose upper item is strictly less attractive than the
lower: ties are no inversion, and hidden items do not count. K/2 is a real number.
"""

from dataclasses import dataclass, field

import numpy as np

from bubblerank.audit.finding import Outcome, as_text
from bubblerank.audit.history import History
from bubblerank.audit.rows import Chunk, Ints, Lists
from bubblerank.metrics import inversions

CHECK = "safety"


@dataclass
class Exposure:
    """How one history treated its users.

    violations: by prefix, the violating steps among the first 100, 1,000, ... and in all
    (under 0). first_step: the first of them; None without any. farthest, far_sum: the highest
    and the summed displacement, the largest distance of an item from its place in R_0.
    """

    displays: int = 0
    violations: dict[int, int] = field(default_factory=lambda: {0: 0})
    first_step: int | None = None
    farthest: int = 0
    far_sum: int = 0
    measured: int = 0


def prefixes(last_step: int) -> list[int]:
    """100, 1,000, ... as far as there are steps, and 100 in any case."""
    found = [100]
    while found[-1] < last_step:
        found.append(found[-1] * 10)
    return [prefix for prefix in found if prefix == 100 or prefix <= last_step]


def attraction_of(history: History) -> list[float] | None:
    """Attractions of the initial list's items; None where the problem lacks one of them."""
    if history.problem is None:
        return None
    known = dict(zip(history.problem.items, history.problem.attraction, strict=True))
    if any(item not in known for item in history.items):
        return None
    return [known[item] for item in history.items]


class SafetyCounter:
    """Follows one history through its chunks."""

    def __init__(self, outcome: Outcome, history: History, readable: bool = False) -> None:
        self.exposure = Exposure()
        self._outcome, self._history, self._readable = outcome, history, readable
        self.unmeasured = 0
        self._attraction = attraction_of(history)
        self._prefixes = prefixes(history.last_step)
        if self._attraction is not None:
            self.exposure.violations.update(dict.fromkeys(self._prefixes, 0))
            initial = inversions(self._attraction, range(history.shown))
            self._twice_allowed = 2 * initial + history.shown

    @property
    def has_attractions(self) -> bool:
        """Whether the constraint can be checked."""
        return self._attraction is not None

    def feed(self, chunk: Chunk) -> None:
        """Measure the next rows."""
        rows, exposure = chunk.rows, self.exposure
        exposure.displays += len(chunk)
        width = rows.shown.shape[1]
        if width == 0 or len(rows.shown) == 0:
            return
        known = (rows.shown[:, 0] >= 0)[rows.shown_id]
        moved = np.abs(rows.shown - np.arange(width)).max(axis=1)[rows.shown_id]
        exposure.farthest = max(exposure.farthest, int(moved[known].max(initial=0)))
        exposure.far_sum += int(moved[known].sum())
        exposure.measured += int(known.sum())
        if self._attraction is None:
            return
        self._outcome.checked += int(known.sum())
        self.unmeasured += len(chunk) - int(known.sum())
        inverted = self._inversions(rows.shown)[rows.shown_id]
        unsafe = np.flatnonzero(known & (2 * inverted > self._twice_allowed))
        if len(unsafe) == 0:
            return
        steps = rows.step[unsafe]
        if exposure.first_step is None:
            exposure.first_step = int(steps[0])
        for prefix in self._prefixes:
            exposure.violations[prefix] += int((steps <= prefix).sum())
        exposure.violations[0] += len(unsafe)
        self._outcome.failed += len(unsafe)
        for row in unsafe[:20].tolist():
            self._outcome.fail(
                int(rows.step[row]),
                f"|V| <= {self._twice_allowed / 2:g}",
                f"|V| = {inverted[row]}: displayed {as_text(chunk.shown_names(row))}",
                failed=0,
            )

    def _inversions(self, lists: Lists) -> Ints:
        attraction = self._attraction or []
        if self._readable:
            counts = [inversions(attraction, one) if one[0] >= 0 else -1 for one in lists.tolist()]
            return np.array(counts, dtype=np.int64)
        from bubblerank.kernels.audit import count_inversions

        found: Ints = count_inversions(lists, np.array(attraction, dtype=np.float64))
        return found
