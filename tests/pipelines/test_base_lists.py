import random
from collections import Counter, defaultdict

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import MIN_TIMESTAMP

from bubblerank.config import RankerConfig
from bubblerank.errors import UsageError
from bubblerank.sessions.encode import encode_blocks
from bubblerank.stream.start import Start
from pipelines.base_lists import (
    StartFromLists,
    StartFromMostFrequent,
    StartFromStatistics,
    read_base_lists,
    statistics_files,
)
from pipelines.engine import choose_engine, run_pipeline
from tests.sessions.strategies import good_batch


class Unpack(beam.DoFn):
    """(query, items, whether there is a state) of starts, which come before all time."""

    def process(self, element, timestamp=beam.DoFn.TimestampParam):
        assert timestamp == MIN_TIMESTAMP
        query, data = element
        start = Start.from_bytes(data)
        yield query, start.items, bool(start.state)


def run(starts, expected):
    def build(pipeline):
        found = starts(pipeline)
        assert found.element_type == beam.typehints.Tuple[str, bytes]
        assert_that(found | beam.ParDo(Unpack()), equal_to(expected))

    options, _ = choose_engine()
    run_pipeline(build, options)


def session(query, number, items):
    clicks = [False] * len(items)
    times = {"session_id": f"s{number}", "event_time": number, "step": None}
    return {"query": query, "items": list(items), "clicks": clicks, **times}


def test_given_lists_start_their_queries():
    lists = {"q": ("b", "a"), "長い": ("x",)}
    expected = [(query, items, False) for query, items in lists.items()]
    run(lambda pipeline: pipeline | StartFromLists(lists), expected)


def test_the_most_frequent_list_of_many_blocks_is_that_of_a_counter():
    """Over blocks of two sessions; ties go to the smallest list in the order of items' bytes."""
    rng = random.Random(8)
    lists = [("b", "a"), ("a", "b"), ("aa", "b"), ("a",), ("é", "a"), ("z", "é")]
    rows = [session(f"q{n % 9}", n, rng.choice(lists)) for n in range(9 * 14)]
    counts = defaultdict(Counter)
    for row in rows:
        counts[row["query"]][tuple(row["items"])] += 1
    assert any(list(c.values()).count(max(c.values())) > 1 for c in counts.values())
    expected = [
        (query, min(c, key=lambda one: (-c[one], [item.encode() for item in one])), False)
        for query, c in counts.items()
    ]
    rng.shuffle(rows)
    blocks = [
        (query, bytes(data)) for query, _, data in encode_blocks(good_batch(rows), "log.jsonl", 2)
    ]

    def starts(pipeline):
        made = beam.Create(blocks).with_output_types(tuple[str, bytes])
        return pipeline | made | StartFromMostFrequent()

    run(starts, expected)


def test_no_sessions_have_no_most_frequent_list():
    def starts(pipeline):
        made = beam.Create([]).with_output_types(tuple[str, bytes])
        return pipeline | made | StartFromMostFrequent()

    run(starts, [])


def test_only_the_rankers_own_rows_of_run_0_are_resumed(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    import schemas

    def row(query, ranker="bubblerank", repetition=0):
        lists = {"initial": ["a", "b"], "base": ["b", "a"]}
        pairs = [{"upper": "a", "lower": "b", "wins": -3, "trials": 5}]
        levels = {"step": 9, "horizon": 10, "log_inverse_delta": 9.2}
        return (
            {"ranker": ranker, "query": query, "run": repetition, "pairs": pairs} | lists | levels
        )

    rows = [row("q"), row("r"), row("q", ranker="other"), row("s", repetition=1)]
    path = tmp_path / "statistics.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schemas.arrow_schema("statistic")), path)
    expected = [("q", ("a", "b"), True), ("r", ("a", "b"), True)]
    starts = StartFromStatistics(statistics_files(str(path)), RankerConfig(horizon=10))
    run(lambda pipeline: pipeline | starts, expected)


def test_a_query_may_stand_in_a_file_twice_only_with_the_same_list(tmp_path):
    path = tmp_path / "lists.jsonl"
    line = '{"query": "q", "items": ["a", "b"], "more": 1}\n'
    path.write_text(line * 2)
    assert read_base_lists(str(path)) == {"q": ("a", "b")}
    path.write_text(line + line.replace('"a", "b"', '"b", "a"'))
    with pytest.raises(UsageError, match="line 2: query 'q' has another base list before: keep"):
        read_base_lists(str(path))
