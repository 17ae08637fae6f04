"""How much of a log a replay could use: for each query, and what that allows to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from bubblerank.bootstrap import Estimate, ratio_over_queries
from bubblerank.sessions import layout

if TYPE_CHECKING:
    from bubblerank.run_folder import RunFolder

ENOUGH_SESSIONS = 100
"""A query with a smaller effective sample is no evidence."""
LISTED_QUERIES = 1000
_CHECKSUM_BYTES = 4


def block_tally(data: bytes) -> tuple[int, int]:
    """(sessions, clicks) in the bytes of a block, without decoding it."""
    header = layout.unpack(data)
    texts = header.session_id_bytes + header.item_bytes + header.query_bytes + header.source_bytes
    end = len(data) - _CHECKSUM_BYTES - texts
    return header.sessions, data.count(1, end - header.clicks, end)


@dataclass(frozen=True)
class QueryUsage:
    """One query of a replayed log.

    read: its accepted records. consumed: sessions that the ranker learned from, which is the
    effective sample of `match`. unused: off-policy sessions, and duplicates where there are any.
    clicks and log_clicks: per consumed session, and per record of the log.
    """

    query: str
    read: int
    consumed: int
    clicks: float | None
    log_clicks: float

    @property
    def unused(self) -> int:
        """What was read and not consumed."""
        return self.read - self.consumed

    @property
    def acceptance(self) -> float:
        """The share that was consumed."""
        return self.consumed / self.read if self.read else 0.0

    @property
    def enough(self) -> bool:
        """Whether the effective sample says anything."""
        return self.consumed >= ENOUGH_SESSIONS

    def to_record(self) -> dict[str, Any]:
        """For run.json; too few sessions have no clicks per session."""
        return {
            **asdict(self),
            "clicks": self.clicks if self.enough else None,
            "unused": self.unused,
            "acceptance": self.acceptance,
            "enough": self.enough,
        }


@dataclass(frozen=True)
class Usage:
    """All queries, the most frequent first."""

    queries: tuple[QueryUsage, ...]

    @property
    def with_evidence(self) -> list[QueryUsage]:
        """The queries that consumed enough."""
        return [query for query in self.queries if query.enough]

    def click_gain(self, seed: int = 0) -> Estimate:
        """Clicks per consumed session against those of the log, relative, by queries.

        For `match` on a randomised log this estimates the ranker's gain over what was logged;
        the consumed sessions include those from which it was still learning.
        """
        found = [query for query in self.with_evidence if query.clicks is not None]
        gains = [(query.clicks or 0.0) - query.log_clicks for query in found]
        return ratio_over_queries(gains, [query.log_clicks for query in found], seed)

    def to_record(self, seed: int = 0) -> dict[str, Any]:
        """For run.json: the whole in numbers, and up to `LISTED_QUERIES` queries."""
        consumed = [query.consumed for query in self.queries]
        return {
            "queries": len(self.queries),
            "queries_with_enough_evidence": len(self.with_evidence),
            "enough_sessions": ENOUGH_SESSIONS,
            "effective_sample": {
                "least": min(consumed, default=0),
                "median": median(consumed) if consumed else 0,
                "most": max(consumed, default=0),
            },
            "click_gain": asdict(self.click_gain(seed)),
            "by_query": [query.to_record() for query in self.queries[:LISTED_QUERIES]],
        }


def usage_of(
    run: RunFolder, tallies: Mapping[str, tuple[int, int]], with_clicks: bool = True
) -> Usage:
    """The usage in a run's displays and in (records, clicks) of each query of its log.

    Without clicks, which take longer to read, nothing is said of clicks per consumed session.
    """
    consumed = _consumed(run, with_clicks)
    found = []
    for query, (read, log_clicks) in tallies.items():
        sessions, clicks = consumed.get(query, (0, 0))
        found.append(
            QueryUsage(
                query,
                read,
                sessions,
                clicks / sessions if sessions and with_clicks else None,
                log_clicks / read,
            )
        )
    return Usage(tuple(sorted(found, key=lambda query: (-query.read, query.query))))


def _consumed(run: RunFolder, with_clicks: bool) -> dict[str, tuple[int, int]]:
    """(sessions, clicks) of each query's displays, file by file."""
    import numpy as np
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = ["query", "clicks"] if with_clicks else ["query"]
    totals: dict[str, tuple[int, int]] = {}
    for file in run.files("displays"):
        with pq.ParquetFile(file, read_dictionary=["query"]) as parquet:
            for batch in parquet.iter_batches(1 << 18, columns=columns):
                queries = batch.column("query")
                names = queries.dictionary.to_pylist()
                codes = queries.indices.to_numpy()
                sessions = np.bincount(codes, minlength=len(names)).tolist()
                clicks = np.zeros(len(names), dtype=np.int64)
                if with_clicks:
                    lists = batch.column("clicks")
                    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
                    clicked = lists.flatten().to_numpy(zero_copy_only=False)
                    clicks = np.bincount(np.repeat(codes, lengths)[clicked], minlength=len(names))
                for query, count, more in zip(names, sessions, clicks.tolist(), strict=True):
                    before = totals.get(query, (0, 0))
                    totals[query] = before[0] + count, before[1] + more
    return totals
