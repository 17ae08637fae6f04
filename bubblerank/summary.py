"""What a simulation came to: means over queries and runs, with standard errors."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean, stdev
from typing import Any

MEASURES = ("regret", "violations", "mean_ndcg")


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """The mean and its standard error; the error of a single value is 0.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    numbers = list(values)
    if len(numbers) < 2:
        return fmean(numbers), 0.0
    return fmean(numbers), stdev(numbers) / math.sqrt(len(numbers))


def summarise(rows: Iterable[Mapping[str, Any]], step: int) -> list[dict[str, Any]]:
    """For each click model and ranker, the measures of metric rows at one step.

    Means and standard errors are over all (query, run).
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["step"] == step:
            groups[row["click_model"], row["ranker"]].append(row)
    table = []
    for (click_model, ranker), found in groups.items():
        line: dict[str, Any] = {
            "click model": click_model,
            "ranker": ranker,
            "learners": len(found),
        }
        for measure in MEASURES:
            mean, error = mean_and_error(float(row[measure]) for row in found)
            line[measure] = mean
            line[f"{measure} +-"] = error
        table.append(line)
    return sorted(table, key=lambda line: (line["click model"], line["regret"]))
