"""Click logs of a known ranker, and what replaying them must give, one session at a time."""

import random

from bubblerank.coins import Coins, stream_key
from bubblerank.config import RankerConfig
from bubblerank.rankers import bubble
from bubblerank.sessions.encode import encode_blocks
from bubblerank.stream import feedback
from bubblerank.stream.join_rows import rows_table
from bubblerank.stream.outputs import Kept, Output, Stepped
from tests.sessions.strategies import good_batch
from tests.statistic_records import statistic_record

ITEMS = ("a", "b", "ç", "d", "e")
CONFIG = RankerConfig(delta=0.4)
SECOND = 1_000_000


def make_log(queries=("q",), sessions=60, seed=0, items=ITEMS, config=CONFIG, spacing_us=SECOND):
    """Sessions of a BubbleRank on its own, some with lists that it would never display."""
    rng = random.Random(seed)
    rows = []
    for query in queries:
        state = bubble.start(len(items), config)
        shown = config.shown(len(items))
        for number in range(sessions):
            state = bubble.prepare(state, config)
            coins = Coins(rng.getrandbits(60), state.step + 1)
            choice = bubble.decide(state, config, coins)
            clicks = [rng.random() < (item + 1) / 8 for item in choice.displayed]
            displayed = choice.displayed
            if rng.random() < 0.15:
                displayed = tuple(rng.sample(range(len(items)), shown))
            else:
                state = bubble.promote(bubble.learn(state, config, choice, clicks), config)
            rows.append(
                {
                    "query": query,
                    "session_id": f"{query}-{rng.randrange(10**6)}-{number}",
                    "event_time": number * spacing_us + rng.randrange(spacing_us),
                    "items": [items[item] for item in displayed],
                    "clicks": clicks,
                    "step": None,
                }
            )
    return rows


def blocks_of(rows, size=16, source="log.jsonl"):
    """(query, first event time, bytes) of the rows, in blocks as they come."""
    found = []
    for first in range(0, len(rows), size):
        batch = good_batch(rows[first : first + size], first + 1)
        found += [tuple(block) for block in encode_blocks(batch, source)]
    return found


def in_order(rows):
    """Stepping order, and each session id once."""
    first = {}
    for row in sorted(rows, key=lambda row: (row["event_time"], row["session_id"].encode())):
        first.setdefault(row["session_id"], row)
    return list(first.values())


def expected(rows, items=ITEMS, config=CONFIG, seed=0, every_us=0):
    """(displays, statistics) of one query's sessions by the readable rules.

    Statistics are the snapshots of all intervals that have sessions, and the final ones.
    """
    ordered = in_order(rows)
    query = ordered[0]["query"]
    index = {item: place for place, item in enumerate(items)}
    state, displays, statistics, interval = bubble.start(len(items), config), [], [], None
    level = config.log_inverse_delta
    for row in ordered:
        if every_us and interval not in (None, row["event_time"] // every_us):
            statistics.append(("bubblerank", query, 0, items, state))
        interval = row["event_time"] // every_us if every_us else None
        shown = [index.get(item, -1) for item in row["items"]]
        key = stream_key(seed, query, 0)
        fed = feedback.feed_logged(state, config, key, shown, row["clicks"], row["step"])
        if fed is not None:
            state = fed.state
            base = [items[item] for item in fed.base]
            displays.append(
                (query, fed.step, row["session_id"], row["event_time"], base, row["items"])
            )
    statistics += [("bubblerank", query, 0, items, state)] * (2 if every_us else 1)
    return displays, [statistic_record(*s, level(s[4].horizon)) for s in statistics]


def read_tables(outputs, kind):
    """The rows of one kind among outputs."""
    return [
        row
        for output in outputs
        if isinstance(output, Output) and output.kind == kind
        for row in rows_table([output.data]).to_pylist()
    ]


def brief(row):
    """A display's row as ``expected`` tells it."""
    time_us = round(row["event_time"].timestamp() * 1_000_000)
    return (
        row["query"],
        row["step"],
        row["session_id"],
        time_us,
        row["base"],
        row["displayed"],
    )


def take_turns(learner, key, turns):
    """Outputs and summed counts of turns given as (new elements, upto_us)."""
    cell, waiting, outputs, counts = None, (), [], {}
    for elements, upto_us in turns:
        *found, kept = learner.turn(key, cell, [*waiting, *elements], upto_us)
        assert isinstance(kept, Kept)
        assert all(isinstance(output, Output | Stepped) for output in found)
        cell, waiting = kept.cell, kept.waiting
        outputs += [output for output in found if isinstance(output, Output)]
        for name, number in kept.counts.items():
            counts[name] = counts.get(name, 0) + number
    return outputs, counts
