"""A replay as one would first write it on Beam: one session an element, one state read a session.

It takes sessions in the order of arrival: no order by event time, no duplicates, no rejects.
"""

import glob
import time
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
from apache_beam.coders import BytesCoder
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec

import schemas
from bubblerank import state_codec
from bubblerank.coins import stream_key
from bubblerank.config import RankerConfig
from bubblerank.rankers import bubble
from bubblerank.stream.feedback import feed_logged
from pipelines.engine import choose_engine, run_pipeline

BaseLists = dict[str, tuple[str, ...]]


class RankOne(beam.DoFn):
    """The ranker's state is read, stepped by the readable functions, and written."""

    STATE = ReadModifyWriteStateSpec("state", BytesCoder())

    def __init__(self, config: RankerConfig, lists: BaseLists) -> None:
        self._config = config
        self._lists = lists

    def process(
        self, element: tuple[str, Any], cell: Any = beam.DoFn.StateParam(STATE)
    ) -> Iterator[dict[str, Any]]:
        query, row = element
        items = self._lists[query]
        known = cell.read()
        if known is None:
            state = bubble.start(len(items), self._config)
        else:
            _, state = state_codec.decode(known, self._config)
        displayed = [items.index(item) for item in row["items"]]
        key = stream_key(0, query, 0)
        fed = feed_logged(state, self._config, key, displayed, row["clicks"], row["step"])
        if fed is None:
            return
        cell.write(state_codec.encode("bubblerank", fed.state))
        yield {
            "ranker": "bubblerank",
            "query": query,
            "run": 0,
            "step": fed.step,
            "session_id": row["session_id"],
            "event_time": row["event_time"],
            "base": [items[item] for item in fed.base],
            "displayed": row["items"],
            "clicks": row["clicks"],
        }


def plain_cpu_seconds(log: str, out: str, config: RankerConfig, lists: BaseLists) -> float:
    """CPU seconds of the plain replay; every session must come out as a display."""

    def build(pipeline: beam.Pipeline) -> None:
        _ = (
            pipeline
            | beam.io.ReadFromParquet(log)
            | beam.Map(lambda row: (row["query"], row)).with_output_types(tuple[str, Any])
            | beam.ParDo(RankOne(config, lists))
            | beam.io.WriteToParquet(out, schemas.arrow_schema("display"), num_shards=1)
        )

    options, _ = choose_engine()
    begun = time.process_time()
    run_pipeline(build, options)
    spent = time.process_time() - begun
    written = sum(pq.read_metadata(path).num_rows for path in glob.glob(f"{out}*"))
    if written != pq.read_metadata(log).num_rows:
        raise RuntimeError(f"the plain replay wrote {written} displays of {log}")
    return spent
