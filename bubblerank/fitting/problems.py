"""Problems from a fitted model: each query's most frequent list as R_0, as in the paper."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bubblerank.fitting.model import FittedModel
from bubblerank.problems import POSITION_PARAMETER, Problem
from bubblerank.stream.start import pack_strings


class FittedProblem(NamedTuple):
    """A problem, the sessions of its query, those of them that showed its list, and its pairs."""

    problem: Problem
    sessions: int
    of_list: int
    pairs: tuple[int, ...]


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
        pairs = tuple(seen.pair[place].tolist())
        problem = _problem(model, seen.queries[query].as_py(), _items(model, best), pairs)
        of_list = int(seen.list_sessions[best])
        fitted.append(FittedProblem(problem, int(totals[query]), of_list, pairs))
    return fitted


def refitted_problem(fitted: FittedProblem, model: FittedModel) -> Problem:
    """The same query and list with the parameters of another model of the same pairs."""
    return _problem(model, fitted.problem.query, fitted.problem.items, fitted.pairs)


def _problem(
    model: FittedModel, query: str, items: tuple[str, ...], pairs: tuple[int, ...]
) -> Problem:
    parameter = POSITION_PARAMETER[model.click_model]
    by_position = tuple(model.position_parameters(len(items)).tolist())
    return Problem(
        query=query,
        items=items,
        click_model=model.click_model,
        attraction=tuple(model.attraction[list(pairs)].tolist()),
        **({parameter: by_position} if parameter else {}),
    )


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
