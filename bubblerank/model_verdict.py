"""What a simulation against fitted click models says of each query, and of all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bubblerank.bootstrap import Estimate, ratio_over_queries
from bubblerank.refits import Refits

RANKER, BASELINE = "bubblerank", "baseline"


@dataclass(frozen=True)
class QueryVerdict:
    """One query: its sessions in the log, and what the ranker and R_0 earn per simulated session.

    violations: steps in which the paper's safety constraint was broken, summed over runs.
    """

    query: str
    sessions: int
    of_list: int
    reward: float
    baseline: float
    ndcg: float
    baseline_ndcg: float
    violations: int

    @property
    def gain(self) -> float:
        """Relative to the baseline; 0 where that earns nothing."""
        return self.reward / self.baseline - 1.0 if self.baseline > 0 else 0.0


@dataclass(frozen=True)
class ModelVerdict:
    """All queries together; intervals are by bootstrap over queries and, where given, refits."""

    queries: tuple[QueryVerdict, ...]
    steps: int
    gain: Estimate
    gain_by_traffic: Estimate
    ndcg_gain: Estimate

    @property
    def violations(self) -> int:
        """Over all queries and runs."""
        return sum(query.violations for query in self.queries)

    @property
    def losing(self) -> int:
        """How many queries earn less than their production list."""
        return sum(query.reward < query.baseline for query in self.queries)


def judge(
    rows: Iterable[Mapping[str, Any]],
    steps: int,
    evidence: Mapping[str, tuple[int, int]],
    seed: int = 0,
    refits: Refits | None = None,
) -> ModelVerdict:
    """The verdict of metric rows at the last step, both rankers, over all runs.

    `evidence` has each query's sessions in the log, and those that showed its production list;
    `refits` are of the same queries in the same order.
    """
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["step"] == steps:
            found[row["query"], row["ranker"]].append(row)
    queries = []
    for query, (sessions, of_list) in evidence.items():
        ranked, base = found[query, RANKER], found[query, BASELINE]
        queries.append(
            QueryVerdict(
                query=query,
                sessions=sessions,
                of_list=of_list,
                reward=_mean(ranked, "reward") / steps,
                baseline=_mean(base, "reward") / steps,
                ndcg=_mean(ranked, "ndcg"),
                baseline_ndcg=_mean(base, "ndcg"),
                violations=sum(int(row["violations"]) for row in ranked),
            )
        )
    bases = np.array([query.baseline for query in queries])
    gains = np.array([query.reward for query in queries]) - bases
    traffic = np.array([query.sessions for query in queries], dtype=np.float64)
    ndcg_gains = [query.ndcg - query.baseline_ndcg for query in queries]
    again = by_traffic = ndcg_again = None
    if refits is not None:
        again = refits.reward - refits.baseline, refits.baseline
        by_traffic = again[0] * traffic, again[1] * traffic
        ndcg_again = refits.ndcg - refits.baseline_ndcg, np.ones_like(refits.ndcg)
    return ModelVerdict(
        queries=tuple(queries),
        steps=steps,
        gain=ratio_over_queries(gains, bases, seed, again),
        gain_by_traffic=ratio_over_queries(gains * traffic, bases * traffic, seed, by_traffic),
        ndcg_gain=ratio_over_queries(ndcg_gains, [1.0] * len(queries), seed, ndcg_again),
    )


def _mean(rows: list[Mapping[str, Any]], name: str) -> float:
    return sum(float(row[name]) for row in rows) / len(rows)
