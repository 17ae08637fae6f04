"""What a run has learned about one query, from its `statistics/`."""

import difflib
import math
from dataclasses import dataclass
from typing import Any

from bubblerank.errors import UsageError
from bubblerank.run_folder import RunFolder


@dataclass(frozen=True)
class PairState:
    """One pair of items: `wins` is the paper's s(upper, lower), `trials` its n.

    threshold: 2 sqrt(n log(1/delta)); the pair is decided when |s| exceeds it.
    winner: the item that is known to be the better one, or None.
    """

    upper: str
    lower: str
    wins: int
    trials: int
    threshold: float
    winner: str | None


@dataclass(frozen=True)
class QueryState:
    """One row of `statistics/`, read for people."""

    ranker: str
    query: str
    run: int
    step: int
    horizon: int
    log_inverse_delta: float
    initial: list[str]
    base: list[str]
    pairs: list[PairState]


def query_states(
    folder: RunFolder, query: str, ranker: str | None = None, run: int | None = None
) -> list[QueryState]:
    """The query's last statistics per (ranker, run); UsageError where there are none."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    folder.read_manifest()
    files = folder.files("statistics")
    if not files:
        raise UsageError(f"{folder.path} holds no statistics: no session was ranked")
    last: dict[tuple[str, int], dict[str, Any]] = {}
    for path in files:
        try:
            table = pq.read_table(path, filters=pc.field("query") == query)
        except (OSError, pa.ArrowInvalid) as error:
            raise UsageError(f"{path} cannot be read ({error})") from error
        for row in table.to_pylist():
            key = (row["ranker"], row["run"])
            if key not in last or row["step"] > last[key]["step"]:
                last[key] = row
    if not last:
        raise UsageError(_unknown_query(folder, query))
    chosen = {
        key: row for key, row in last.items() if ranker in (None, key[0]) and run in (None, key[1])
    }
    if not chosen:
        known = ", ".join(f"{name} run {number}" for name, number in sorted(last))
        raise UsageError(f"no statistics of {query!r} for that ranker and run: known are {known}")
    return [_state(chosen[key]) for key in sorted(chosen)]


def _state(row: dict[str, Any]) -> QueryState:
    log_inverse_delta = row["log_inverse_delta"]
    pairs = [_pair(pair, log_inverse_delta) for pair in row["pairs"]]
    return QueryState(**{**row, "pairs": pairs})


def _pair(pair: dict[str, Any], log_inverse_delta: float) -> PairState:
    threshold = 2.0 * math.sqrt(pair["trials"] * log_inverse_delta)
    winner = None
    if abs(pair["wins"]) > threshold:
        winner = pair["upper"] if pair["wins"] > 0 else pair["lower"]
    return PairState(**pair, threshold=threshold, winner=winner)


def _unknown_query(folder: RunFolder, query: str) -> str:
    import pyarrow.parquet as pq

    known: set[str] = set()
    for path in folder.files("statistics"):
        known.update(pq.read_table(path, columns=["query"])["query"].unique().to_pylist())
    close = difflib.get_close_matches(query, sorted(known)[:50_000], n=1)
    hint = (
        f"did you mean {close[0]!r}? "
        if close
        else f"for example {min(known)!r}. "
        if known
        else ""
    )
    return (
        f"no statistics of query {query!r} in {folder.path}: {hint}It holds {len(known):,} queries"
    )
