"""What a simulation came to: means over queries and runs, with standard errors."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean, stdev
from typing import Any

MEASURES = ("regret", "violations", "mean_ndcg")


def mean_and_error(values: Iterable[float]) -> tuple[float, float | None]:
    """The mean and its standard error; a single value tells nothing of its error.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    numbers = list(values)
    if len(numbers) < 2:
        return fmean(numbers), None
    return fmean(numbers), stdev(numbers) / math.sqrt(len(numbers))


def with_error(mean: float, error: float | None) -> str:
    """A mean as people read it: to two digits of its error, or to four digits without one.

    >>> with_error(1234.5678, 12.345), with_error(0.87, 0.00234), with_error(2.5, None)
    ('1,235 ± 12', '0.8700 ± 0.0023', '2.500')
    """
    places = _places(error, 2) if error else _places(mean, 4)
    if error is None and float(mean).is_integer():
        places = 0
    shown = f"{mean:,.{places}f}"
    return shown if error is None else f"{shown} ± {error:,.{places}f}"


def _places(value: float, digits: int) -> int:
    """Decimal places that show so many digits of a value, at most 6."""
    if value == 0 or not math.isfinite(value):
        return 0
    return min(6, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def summarise(rows: Iterable[Mapping[str, Any]], step: int) -> list[dict[str, Any]]:
    """For each click model and ranker, the measures of metric rows at one step.

    Means and standard errors are over all (query, run); the smallest regret comes first.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["step"] == step:
            groups[row["click_model"], row["ranker"]].append(row)
    table = []
    for (click_model, ranker), found in groups.items():
        line: dict[str, Any] = {
            "click_model": click_model,
            "ranker": ranker,
            "learners": len(found),
        }
        for measure in MEASURES:
            mean, error = mean_and_error(float(row[measure]) for row in found)
            line[measure] = mean
            line[f"{measure}_error"] = error
        table.append(line)
    return sorted(table, key=lambda line: (line["click_model"], line["regret"], line["ranker"]))


def for_people(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line of ``summarise`` with each mean and its error in one cell."""
    shown = {"click model": line["click_model"], "ranker": line["ranker"]}
    shown["learners"] = line["learners"]
    for measure in MEASURES:
        name = measure.replace("mean_ndcg", "mean NDCG")
        shown[name] = with_error(line[measure], line[f"{measure}_error"])
    return shown
