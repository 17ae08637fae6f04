"""Problems from a fitted model: each query's most frequent list as R_0, as in the paper."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bubblerank.fitting.model import FittedModel
from bubblerank.problems import POSITION_PARAMETER, Problem
from bubblerank.stream.start import pack_strings


class FittedProblem(NamedTuple):
    """A problem, the sessions of its query, and those of them that showed its list."""

    problem: Problem
    sessions: int
    of_list: int


def fitted_problems(model: FittedModel, queries: int | None = None) -> list[FittedProblem]:
    """The problems of the `queries` most frequent queries (default: all), frequent ones first.

    Position parameters come from the whole log. Of equally frequent lists the one is taken that
    `replay --base-lists most-frequent` takes; equally frequent queries follow by name.
    """
    seen = model.observations
    totals = np.bincount(seen.list_query, seen.list_sessions, len(seen.queries)).astype(np.int64)
    chosen = np.argsort(-totals, kind="stable")[:queries]
    first_list = np.searchsorted(seen.list_query, chosen)
    fitted = []
    for query, first in zip(chosen.tolist(), first_list.tolist(), strict=True):
        best = min(_as_frequent(model, first), key=lambda row: pack_strings(_items(model, row)))
        place = slice(seen.list_start[best], seen.list_start[best] + seen.list_length[best])
        by_position = model.position_parameters(int(seen.list_length[best]))
        parameter = POSITION_PARAMETER[model.click_model]
        problem = Problem(
            query=seen.queries[query].as_py(),
            items=_items(model, best),
            click_model=model.click_model,
            attraction=tuple(model.attraction[seen.pair[place]].tolist()),
            **({parameter: tuple(by_position.tolist())} if parameter else {}),
        )
        fitted.append(FittedProblem(problem, int(totals[query]), int(seen.list_sessions[best])))
    return fitted


def _as_frequent(model: FittedModel, first: int) -> range:
    """The lists of a query that are as frequent as its first one; counts are sorted that way."""
    seen = model.observations
    last = first
    while (
        last + 1 < len(seen.list_query)
        and seen.list_query[last + 1] == seen.list_query[first]
        and seen.list_sessions[last + 1] == seen.list_sessions[first]
    ):
        last += 1
    return range(first, last + 1)


def _items(model: FittedModel, row: int) -> tuple[str, ...]:
    seen = model.observations
    start = seen.list_start[row]
    codes = seen.item[start : start + seen.list_length[row]].tolist()
    return tuple([seen.items[code].as_py() for code in codes])
