"""Records of statistics and metrics as Arrow IPC streams."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import schemas
from bubblerank.rankers.bubble import BubbleState


def to_ipc(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def statistic_record(
    ranker: str,
    query: str,
    run: int,
    items: Sequence[str],
    state: BubbleState,
    log_inverse_delta: float,
) -> dict[str, Any]:
    """BubbleRank's state as a record of the statistic schema."""
    uppers, lowers = np.nonzero(np.triu(state.trials, 1))
    pairs = zip(
        uppers.tolist(),
        lowers.tolist(),
        state.wins[uppers, lowers].tolist(),
        state.trials[uppers, lowers].tolist(),
        strict=True,
    )
    return {
        "ranker": ranker,
        "query": query,
        "run": run,
        "step": state.step,
        "horizon": state.horizon,
        "log_inverse_delta": log_inverse_delta,
        "initial": list(items),
        "base": [items[item] for item in state.base],
        "pairs": [
            {"upper": items[i], "lower": items[j], "wins": wins, "trials": trials}
            for i, j, wins, trials in pairs
        ],
    }


def record_table(kind: str, records: Sequence[dict[str, Any]]) -> bytes:
    """Records of one kind as an Arrow IPC stream."""
    return to_ipc(pa.Table.from_pylist(list(records), schema=schemas.arrow_schema(kind)))
