"""Intervals by bootstrap over queries, and when there is too little to say anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Values = Sequence[float] | FloatArray

MIN_QUERIES = 10
"""An interval over fewer queries is no evidence: the bootstrap needs some to draw from."""
NOT_ENOUGH = "not enough evidence"
LEVEL = 0.95
RESAMPLES = 2000
_CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Estimate:
    """A ratio of sums over queries with its interval; `value` is None without enough evidence."""

    value: float | None
    low: float | None
    high: float | None
    queries: int

    @property
    def enough(self) -> bool:
        """Whether there is a number."""
        return self.value is not None

    def text(self, form: str = ".4g") -> str:
        """The number with its interval, or that there is not enough evidence.

        >>> Estimate(0.25, 0.125, 0.5, 40).text(".1%")
        '25.0% [12.5%, 50.0%]'
        >>> Estimate(None, None, None, 3).text()
        'not enough evidence (3 queries, at least 10 are needed)'
        """
        if self.value is None:
            return f"{NOT_ENOUGH} ({self.queries} queries, at least {MIN_QUERIES} are needed)"
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]"


def ratio_over_queries(
    parts: Values,
    wholes: Values,
    seed: int = 0,
    refits: tuple[FloatArray, FloatArray] | None = None,
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    min_queries: int = MIN_QUERIES,
) -> Estimate:
    """sum(parts) / sum(wholes), with the percentile interval over resampled queries.

    A value stands for a query, so the interval says how far the ratio would differ for other
    queries like these. `refits` are parts and wholes by (refit, query), from fits to clicks that
    were drawn from the first fit: how far they lie from it on the mean is how far it lies from
    the truth, which is taken off, and their spread goes into the interval.
    """
    top, bottom = np.asarray(parts, np.float64), np.asarray(wholes, np.float64)
    if top.shape != bottom.shape or top.ndim != 1:
        raise ValueError(f"parts and wholes must be alike, got shapes {top.shape}, {bottom.shape}")
    count = len(top)
    if count < min_queries or not bottom.sum() > 0:
        return Estimate(None, None, None, count)
    value = float(top.sum() / bottom.sum())
    if refits is not None and len(refits[0]):
        again = refits[0].sum(axis=1) / refits[1].sum(axis=1)
        value = 2.0 * value - float(again.mean())
    else:
        refits = None
    draw = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, count])
    ratios: list[float] = []
    batch = max(1, _CELLS_AT_ONCE // count)
    while len(ratios) < resamples:
        rows = draw.integers(count, size=(min(batch, resamples - len(ratios)), count))
        found = _ratios(top[rows], bottom[rows])
        if refits is not None:
            refit = draw.integers(len(refits[0]), size=(len(rows), 1))
            found = 2.0 * found - _ratios(refits[0][refit, rows], refits[1][refit, rows])
        ratios += found.tolist()
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), count)


def _ratios(parts: FloatArray, wholes: FloatArray) -> FloatArray:
    part, whole = parts.sum(axis=1), wholes.sum(axis=1)
    ratios: FloatArray = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return ratios
