"""Small logs as sessions (query, items, clicks), and as the tables that are fitted."""

import numpy as np
import pyarrow as pa

from bubblerank.fitting.list_counts import count_table, merge_counts
from bubblerank.fitting.observations import Observations
from bubblerank.generation.records import to_records
from bubblerank.generation.settings import LogSettings
from bubblerank.generation.users import generate
from bubblerank.generation.world import make_world
from bubblerank.sessions.validate import validate


def random_sessions(count, seed=0, queries=4, items=7, longest=6):
    """Sessions of lists that vary in everything, also in length; clicks at random."""
    draw = np.random.default_rng(seed)
    sessions = []
    for _ in range(count):
        query = f"q{draw.integers(queries)}"
        shown = draw.permutation(items)[: draw.integers(1, longest + 1)]
        clicks = draw.random(len(shown)) < draw.choice([0.1, 0.4])
        sessions.append((query, [f"i{item}" for item in shown], clicks.tolist()))
    return sessions


def good_table(sessions):
    """Sessions as an accepted table."""
    count = len(sessions)
    rows = pa.record_batch(
        {
            "query": pa.array([query for query, _, _ in sessions]),
            "session_id": pa.array([f"s{number}" for number in range(count)]),
            "event_time": pa.array(range(count), pa.int64()),
            "items": pa.array([items for _, items, _ in sessions], pa.list_(pa.string())),
            "clicks": pa.array([clicks for _, _, clicks in sessions], pa.list_(pa.bool_())),
        }
    )
    validated = validate(rows, "test")
    assert validated.rejects.num_rows == 0
    return validated.good


def counts(sessions):
    return merge_counts([count_table(good_table(sessions))])


def observations(sessions):
    return Observations.of(counts(sessions))


def generated(**settings):
    """(world, observations) of a generated log."""
    world = make_world(LogSettings(**settings))
    tables = [
        count_table(validate(to_records(chunk, False), "generated").good)
        for chunk in generate(world)
    ]
    return world, Observations.of(merge_counts(tables))


def attraction_by_pair(model):
    """The fitted attractions by (query, item) texts."""
    seen = model.observations
    queries, items = seen.queries.to_pylist(), seen.items.to_pylist()
    return {
        (queries[key // len(items)], items[key % len(items)]): value
        for key, value in zip(seen.pair_keys.tolist(), model.attraction.tolist(), strict=True)
    }
