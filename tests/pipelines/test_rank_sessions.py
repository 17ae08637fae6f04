import random

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.coders import BytesCoder, StrUtf8Coder, TupleCoder
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp

from bubblerank import state_codec
from bubblerank.books import Books
from bubblerank.rankers import bubble
from bubblerank.stream.join_rows import rows_table
from bubblerank.stream.replay import Replay
from bubblerank.stream.resume import start_from_statistic
from bubblerank.stream.start import Start
from pipelines.engine import choose_engine, run_pipeline
from pipelines.rank_sessions import KINDS, RankSessions
from pipelines.read_sessions import SessionBlocks
from pipelines.replay import ReplaySettings, rank_and_write
from tests.stream.logs import CONFIG, ITEMS, SECOND, blocks_of, brief, expected, in_order, make_log

REPLAY = Replay(CONFIG)
_SEEN: list[tuple[str, int, bytes]] = []


class Note(beam.DoFn):
    """Keeps each output with its kind and the time it was emitted for, in order of emission."""

    def __init__(self, kind):
        self.kind = kind

    def process(self, data, timestamp=beam.DoFn.TimestampParam):
        _SEEN.append((self.kind, timestamp.micros, data))
        return ()


def arrived(element):
    _SEEN.append(("arrived", 0, element[1]))
    return element


def start(query, items=ITEMS, state=b""):
    return TimestampedValue((query, Start(items, state).to_bytes()), MIN_TIMESTAMP)


def element(block):
    query, time_us, data = block
    return TimestampedValue((query, data), Timestamp(micros=time_us))


def stream(*events):
    """A TestStream of blocks (add) and numbers of seconds that the watermark reaches."""
    test = TestStream(coder=TupleCoder((StrUtf8Coder(), BytesCoder())))
    for event in events:
        if isinstance(event, list):
            test = test.add_elements([e if hasattr(e, "timestamp") else element(e) for e in event])
        else:
            test = test.advance_watermark_to(event)
    return test.advance_watermark_to_infinity()


def rank(source, learner=REPLAY, every_s=1.0, flags=("--streaming",)):
    """(counters, outputs in order of emission) of RankSessions on its own."""
    _SEEN.clear()

    def build(pipeline):
        elements = pipeline | source | beam.Map(arrived).with_output_types(tuple[str, bytes])
        ranked = elements | RankSessions(learner, every_s)
        for kind in KINDS:
            _ = ranked[kind] | f"Note {kind}" >> beam.ParDo(Note(kind))

    counters = run_pipeline(build, choose_engine(list(flags))[0])
    return counters, list(_SEEN)


def batch(elements, learner=REPLAY):
    values = [e if hasattr(e, "timestamp") else element(e) for e in elements]
    source = beam.Create(values) | "Stamp" >> beam.Map(lambda value: value)
    return rank(source, learner, None, ())


def rows_of(seen, kind):
    return [
        row for found, _, data in seen if found == kind for row in rows_table([data]).to_pylist()
    ]


def tables(seen):
    """Everything that does not depend on when turns came: displays in order, statistics."""
    by_query = {}
    for row in rows_of(seen, "display"):
        by_query.setdefault(row["query"], []).append(row)
    statistics = sorted(map(repr, rows_of(seen, "statistic")))
    return by_query, statistics


def shuffled(values, seed=0):
    values = list(values)
    random.Random(seed).shuffle(values)
    return values


def balanced(counters, read):
    Books.from_counters({**counters, "read": read}).balance()
    return counters


def test_nothing_is_emitted_before_the_watermark_passes():
    rows = make_log(sessions=30)
    marks = [blocks_of(make_log([f"mark{n}"], sessions=1)) for n in range(4)]
    events = ([start("q"), *blocks_of(rows, size=30)], marks[0], 10, marks[1], 20, marks[2])
    _, seen = rank(stream(*events))
    arrivals = [place for place, event in enumerate(seen) if event[0] == "arrived"][-3:]
    steps = [len(rows_of(seen[:place], "display")) for place in arrivals]
    ordered = [row[3] for row in expected(rows)[0]]
    assert steps == [
        0,
        sum(t < 10 * SECOND for t in ordered),
        sum(t < 20 * SECOND for t in ordered),
    ]
    for kind, reached, data in seen:
        assert all(brief(row)[3] < reached for row in rows_of([(kind, 0, data)], "display"))


@pytest.mark.parametrize("seed", range(2))
def test_sessions_step_in_event_time_order_whatever_the_order_of_arrival(seed):
    rows = make_log(sessions=60)
    displays, statistics = expected(rows)
    arrivals = shuffled(blocks_of(shuffled(rows, seed), size=7), seed)
    _, seen = rank(stream([*arrivals, start("q")], 20, 40))
    assert [brief(row) for row in rows_of(seen, "display")] == displays
    assert rows_of(seen, "statistic") == statistics


def test_sessions_of_the_same_time_step_by_session_id():
    rows = [{**row, "event_time": 7 * SECOND} for row in make_log(sessions=20)]
    _, seen = rank(stream([start("q")], [*shuffled(blocks_of(rows, size=3))], 10))
    assert [brief(row) for row in rows_of(seen, "display")] == expected(rows)[0]


def test_a_late_session_is_counted_and_rejected_with_its_payload():
    rows = make_log(sessions=40)
    on_time, late = [*rows[:5], *rows[6:]], rows[5]
    events = ([start("q"), *blocks_of(on_time)], 35, blocks_of([late], source="late.jsonl"))
    counters, seen = rank(stream(*events))
    (reject,) = rows_of(seen, "reject")
    assert (reject["source"], reject["position"], reject["reason"]) == ("late.jsonl", 1, "late")
    assert f'"session_id": "{late["session_id"]}"' in reject["payload"]
    assert str(late["event_time"]) in reject["payload"]
    assert balanced(counters, len(rows))["rejected"] == 1
    assert [brief(row) for row in rows_of(seen, "display")] == expected(on_time)[0]


def test_a_session_behind_the_watermark_whose_place_is_still_free_is_not_late():
    rows = make_log(sessions=20)
    events = ([start("q"), *blocks_of(rows[:10])], 30, blocks_of(rows[10:]))
    counters, seen = rank(stream(*events))
    assert balanced(counters, len(rows)).get("rejected", 0) == 0
    assert [brief(row) for row in rows_of(seen, "display")] == expected(rows)[0]


def test_duplicates_are_dropped_within_a_block_across_blocks_and_across_turns():
    rows = make_log(sessions=40)
    again = [rows[3], rows[17], rows[30]]
    events = (
        [start("q"), *blocks_of([*rows, rows[3]], size=50)],
        blocks_of([rows[17]]),
        25,
        blocks_of(again),
        38,
        blocks_of(again),
    )
    counters, seen = rank(stream(*events))
    assert [brief(row) for row in rows_of(seen, "display")] == expected(rows)[0]
    assert balanced(counters, 40 + 1 + 1 + 3 + 3)["duplicate"] == 8
    assert "rejected" not in counters


def test_a_twin_beyond_the_memory_is_late_and_never_counted_twice():
    rows = make_log(sessions=40)
    events = ([start("q"), *blocks_of(rows)], 40, blocks_of([rows[0], rows[39]]))
    counters, seen = rank(stream(*events), Replay(CONFIG, duplicate_memory=5))
    assert balanced(counters, 42)["duplicate"] == 1
    assert [row["reason"] for row in rows_of(seen, "reject")] == ["late"]
    assert [brief(row) for row in rows_of(seen, "display")] == expected(rows)[0]


def test_timers_of_many_keys_each_serve_their_own_sessions():
    queries = [f"q{n}" for n in range(40)]
    rows = make_log(queries, sessions=12)
    arrivals = shuffled(blocks_of(shuffled(rows), size=50))
    half = len(arrivals) // 2
    events = ([start(q) for q in queries], arrivals[:half], arrivals[half:], 3, 6, 9)
    counters, seen = rank(stream(*events), every_s=2.0)
    found, _ = tables(seen)
    for query in queries:
        mine = [row for row in rows if row["query"] == query]
        assert [brief(row) for row in found[query]] == expected(mine)[0]
    assert balanced(counters, len(rows))["queries"] == len(queries)


@pytest.mark.parametrize("every_s", [0.5, 7.0, 1000.0])
def test_a_stream_and_a_batch_of_the_same_log_end_in_the_same_rows(every_s):
    queries = ["q", "é", "z"]
    rows = make_log(queries, sessions=30)
    rows += rows[::7]
    learner = Replay(CONFIG, snapshot_every_us=8 * SECOND)
    starts = [start(q) for q in queries[:2]]
    events = (starts, shuffled(blocks_of(shuffled(rows), size=11)), 10, 20)
    streamed, seen = rank(stream(*events), learner, every_s)
    batched, batch_seen = batch([*starts, *blocks_of(rows, size=1000)], learner)
    assert tables(seen) == tables(batch_seen)
    assert streamed == batched
    assert balanced(batched, len(rows))["no_base_list"] == 30
    statistics = [
        expected([r for r in rows if r["query"] == q], every_us=8 * SECOND)[1] for q in queries[:2]
    ]
    assert sorted(map(repr, sum(statistics, []))) == tables(seen)[1]


def test_a_snapshot_comes_when_the_watermark_passes_its_interval_without_new_sessions():
    rows = make_log(sessions=5)
    learner = Replay(CONFIG, snapshot_every_us=8 * SECOND)
    _, seen = rank(stream([start("q"), *blocks_of(rows)], 7, 9, 30), learner)
    times = [time for kind, time, _ in seen if kind == "statistic"]
    assert times[0] == 8 * SECOND
    assert len(times) == 2


def test_a_resumed_state_goes_on_where_it_ended():
    rows = make_log(sessions=60)
    before, after = in_order(rows)[:30], in_order(rows)[30:]
    _, seen = rank(stream([start("q"), *blocks_of(before)]))
    (row,) = rows_of(seen, "statistic")
    resumed = start_from_statistic(row, CONFIG)
    events = ([*shuffled(blocks_of(after))], [start("q", resumed.items, resumed.state)], 45)
    _, seen = rank(stream(*events))
    displays, statistics = expected(rows)
    assert [brief(row) for row in rows_of(seen, "display")] == displays[
        -len(rows_of(seen, "display")) :
    ]
    assert rows_of(seen, "statistic") == statistics


def test_of_several_starts_the_furthest_is_taken():
    state = bubble.start(len(ITEMS), CONFIG)
    encoded = state_codec.encode(
        "bubblerank", bubble.BubbleState(state.base, state.wins, state.trials, 3, 0)
    )
    counters, seen = rank(stream([start("q"), start("q", ITEMS, encoded)]))
    assert [row["step"] for row in rows_of(seen, "statistic")] == [3]
    assert counters == {"queries": 1}


def test_an_empty_stream_ends_with_nothing():
    assert rank(stream(5)) == ({}, [])


def test_event_times_before_1970_and_far_ahead_step_in_order():
    rows = make_log(sessions=30)
    for shift in (-(10**15), 3 * 10**15):
        moved = [{**row, "event_time": row["event_time"] + shift} for row in rows]
        middle = Timestamp(micros=15 * SECOND + shift)
        _, seen = rank(stream([start("q"), *shuffled(blocks_of(moved, 4))], middle))
        assert [row["session_id"] for row in rows_of(seen, "display")] == [
            d[2] for d in expected(rows)[0]
        ]


def test_a_stream_writes_the_rows_that_a_batch_writes(tmp_path):
    queries = ["q", "é"]
    rows = make_log(queries, sessions=30)
    late = {**rows[2], "session_id": "late", "event_time": 1}
    lists = dict.fromkeys(queries, ITEMS)
    learner = Replay(CONFIG, snapshot_every_us=8 * SECOND)
    arrivals = shuffled(blocks_of(shuffled(rows), size=11))
    source = stream(arrivals, 10, 20, blocks_of([late]), 25, 40)

    def write(out, blocks, every_s, flags):
        def build(pipeline):
            settings = ReplaySettings(learner, (), str(tmp_path / out), lists)
            typed = pipeline | blocks | beam.Map(lambda e: e).with_output_types(tuple[str, bytes])
            nothing = pipeline | "NoRejects" >> beam.Create([]).with_output_types(bytes)
            rank_and_write(pipeline, SessionBlocks(typed, nothing), settings, every_s)

        return run_pipeline(build, choose_engine(flags)[0])

    streamed = write("stream", source, 5.0, ["--streaming"])
    write("batch", beam.Create([element(b) for b in blocks_of(rows)]), None, [])
    for part in ("displays", "statistics"):
        one, other = (read_part(tmp_path / out / part) for out in ("stream", "batch"))
        assert one == other
    assert len(list((tmp_path / "stream" / "displays").iterdir())) > 1
    assert [row["reason"] for row in pq.read_table(tmp_path / "stream/rejects").to_pylist()] == [
        "late"
    ]
    assert balanced(streamed, len(rows) + 1)["rejected"] == 1


def read_part(folder):
    return sorted(repr(row) for row in pq.read_table(folder).to_pylist())
