import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import schemas
from bubblerank.closed_loop import Displays
from bubblerank.rankers.bubble import BubbleState
from bubblerank.sessions.packed_text import Text
from bubblerank.stream.join_rows import is_packed, rows_table
from bubblerank.stream.packed_rows import DisplayRows, Stream, pack_displays, pack_statistic
from bubblerank.stream.tables import record_table
from tests.statistic_records import statistic_record

WORDS = st.lists(st.sampled_from(["a", "b", "ç", "日本", "x y", "z" * 50]), min_size=1, unique=True)
QUERIES = st.sampled_from(["q", "é", "other"])


@st.composite
def streams(draw):
    items = draw(WORDS)
    return draw(QUERIES), draw(st.integers(0, 3)), items, draw(st.integers(1, len(items)))


@st.composite
def displays(draw):
    """(frame, its rows as dictionaries)."""
    query, run, items, shown = draw(streams())
    count = draw(st.integers(1, 4))
    logged = draw(st.booleans())
    orders = [draw(st.permutations(range(len(items)))) for _ in range(count)]
    clicks = [[draw(st.booleans()) for _ in range(shown)] for _ in range(count)]
    ids = [f"{draw(QUERIES)}{number}" for number in range(count)]
    packed = pack_displays(
        DisplayRows(
            Stream("bubblerank", query, run, Text.of(items)),
            np.arange(count, dtype=np.int64) + 7,
            np.arange(count, dtype=np.int64) if logged else None,
            Text.of(ids) if logged else None,
            Displays(
                np.array(orders, dtype=np.int16)[:, :shown],
                np.array(clicks, dtype=np.uint8),
                np.array(orders, dtype=np.int16),
            ),
        )
    )
    rows = [
        {
            "ranker": "bubblerank",
            "query": query,
            "run": run,
            "step": number + 7,
            "session_id": ids[number] if logged else None,
            "event_time": number if logged else None,
            "base": [items[item] for item in orders[number]],
            "displayed": [items[item] for item in orders[number][:shown]],
            "clicks": clicks[number],
        }
        for number in range(count)
    ]
    return packed, rows


def as_rows(table):
    return [
        {**row, "event_time": None if row["event_time"] is None else row["event_time"].microsecond}
        for row in table.to_pylist()
    ]


@given(st.lists(displays(), min_size=1, max_size=5))
def test_joined_displays_are_the_rows_of_their_frames_one_after_another(frames):
    table = rows_table([packed for packed, _ in frames])
    assert table.cast(schemas.arrow_schema("display")).num_rows == table.num_rows
    assert as_rows(table) == [row for _, rows in frames for row in rows]


@given(st.lists(st.tuples(streams(), st.integers(0, 2**32)), min_size=1, max_size=5))
def test_joined_statistics_are_the_records_of_their_states(drawn):
    packed, records = [], []
    for (query, run, items, _), seed in drawn:
        rng = np.random.default_rng(seed)
        upper = np.triu(rng.integers(0, 3, (len(items), len(items))), 1)
        base = tuple(rng.permutation(len(items)).tolist())
        state = BubbleState(base, upper - upper.T, upper + upper.T, int(upper.sum()), 100)
        packed.append(pack_statistic(Stream("bubblerank", query, run, Text.of(items)), state, 1.5))
        records.append(statistic_record("bubblerank", query, run, items, state, 1.5))
    assert rows_table(packed).to_pylist() == records


def test_arrow_streams_are_taken_as_they_are():
    state = BubbleState((0,), *np.zeros((2, 1, 1), dtype=np.int64), 0, 1)
    record = statistic_record("bubblerank", "q", 0, ["a"], state, 1.0)
    data = record_table("statistic", [record])
    assert not is_packed(data)
    assert rows_table([data, data]).to_pylist() == [record, record]
