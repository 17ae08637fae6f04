"""Large logs to replay: the compiled ranker's own displays as sessions, in event-time order."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import schemas
from benchmarks.kernels import MODELS
from bubblerank.closed_loop import Displays, Experiment, advance_compiled, begin
from bubblerank.config import RankerConfig

POSITIONS = 10
ROW_GROUP_ROWS = 262_144
TRAJECTORIES = 1_000
_BEGIN_US = 1_700_000_000_000_000
_GAP_US = 1_000


def write_click_log(path: Path, sessions: int, queries: int, config: RankerConfig) -> None:
    """Sessions of all queries in turn, a millisecond apart; every one of them can be consumed.

    Each query has ten items of its own. Its displays are those of one of at most 1,000
    trajectories of BubbleRank, by the config, against a cascade of ten items.
    """
    steps = -(-sessions // queries)
    shown = _trajectories(min(queries, TRAJECTORIES), steps, config)
    texts = _names("q{:06d}", queries), _names("d{:07d}", queries * POSITIONS)
    schema = schemas.arrow_schema("session")
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
        for first in range(0, sessions, ROW_GROUP_ROWS):
            rows = np.arange(first, min(first + ROW_GROUP_ROWS, sessions))
            writer.write_table(_rows(rows, queries, shown, *texts).cast(schema))


def base_lists(queries: int) -> dict[str, tuple[str, ...]]:
    """The initial lists of a log of so many queries."""
    return {
        f"q{query:06d}": tuple(f"d{query * POSITIONS + place:07d}" for place in range(POSITIONS))
        for query in range(queries)
    }


def _trajectories(count: int, steps: int, config: RankerConfig) -> Displays:
    """The displays of each, one after another in the first dimension."""
    found = []
    for number in range(count):
        experiment = Experiment("bubblerank", f"q{number:06d}", MODELS[0], config)
        found.append(advance_compiled(experiment, begin(experiment), steps, (), True).displays)
    return Displays(*(np.stack(arrays) for arrays in zip(*found, strict=True)))


def _names(pattern: str, count: int) -> pa.StringArray:
    return pa.array([pattern.format(number) for number in range(count)])


def _rows(
    rows: np.ndarray, queries: int, shown: Displays, names: pa.StringArray, words: pa.StringArray
) -> pa.Table:
    query, step = rows % queries, rows // queries
    trajectory = query % len(shown.displayed)
    items = shown.displayed[trajectory, step] + query[:, None] * POSITIONS
    clicks = shown.clicked[trajectory, step].astype(np.bool_)
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * np.int32(POSITIONS)
    ids = np.char.add("s", np.char.zfill(rows.astype(str), 10))
    return pa.table(
        {
            "query": names.take(pa.array(query)),
            "session_id": pa.array(ids),
            "event_time": pa.array(_BEGIN_US + rows * _GAP_US).cast(pa.timestamp("us", tz="UTC")),
            "items": pa.ListArray.from_arrays(offsets, words.take(pa.array(items.reshape(-1)))),
            "clicks": pa.ListArray.from_arrays(offsets, pa.array(clicks.reshape(-1))),
            "step": pa.array(step + 1),
        }
    )
