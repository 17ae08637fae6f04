from hypothesis import given, settings
from hypothesis import strategies as st

from bubblerank.config import RankerConfig
from bubblerank.stream.outputs import Kept, Stepped
from bubblerank.stream.replay import Replay
from bubblerank.stream.start import Start
from tests.stream.logs import (
    CONFIG,
    ITEMS,
    SECOND,
    blocks_of,
    brief,
    expected,
    make_log,
    read_tables,
    take_turns,
)

START = Start(ITEMS).to_bytes()
ROWS = make_log(sessions=40, spacing_us=10)


def elements_of(rows, size):
    return [data for _, _, data in blocks_of(rows, size)]


def settings_of(**more):
    return Replay(CONFIG, duplicate_memory=1000, **more)


@settings(max_examples=60)
@given(
    cuts=st.lists(st.integers(-5, 450), max_size=6),
    every=st.sampled_from([0, 1, 37, 100, 1000]),
    size=st.integers(1, 50),
    order=st.permutations(range(len(ROWS))),
    first_list=st.booleans(),
    mode=st.sampled_from(["logged", "match"]),
)
def test_turns_at_any_event_times_give_the_rows_of_one_turn(
    cuts, every, size, order, first_list, mode
):
    learner = settings_of(snapshot_every_us=every, first_list=first_list, feedback=mode)
    rows = [ROWS[n] for n in order] + [ROWS[n] for n in order[:5]]
    elements = [*elements_of(rows, size), *([] if first_list else [START])]
    one, one_counts = take_turns(learner, "q", [(elements, None)])
    turns = [(elements, None)]
    if cuts:
        first, *later = sorted(cuts)
        turns = [(elements, first), *(([], cut) for cut in later), ([], None)]
    many, many_counts = take_turns(learner, "q", turns)
    for kind in ("display", "statistic", "reject"):
        assert read_tables(many, kind) == read_tables(one, kind)
    assert many_counts == one_counts
    assert one_counts["duplicate"] == 5


@settings(max_examples=40)
@given(
    cuts=st.lists(st.integers(0, 400), min_size=1, max_size=5, unique=True),
    every=st.sampled_from([0, 37, 100]),
)
def test_sessions_may_arrive_turn_by_turn(cuts, every):
    turns, cuts, low = [([START], -1)], sorted(cuts), 0
    for high in [*cuts, 1000]:
        rows = [row for row in ROWS if low <= row["event_time"] < high]
        turns.append((elements_of(rows, 3), high))
        low = high
    learner = settings_of(snapshot_every_us=every)
    outputs, _ = take_turns(learner, "q", [*turns, ([], None)])
    displays, statistics = expected(ROWS, every_us=every)
    assert [brief(row) for row in read_tables(outputs, "display")] == displays
    assert read_tables(outputs, "statistic") == statistics


@settings(max_examples=30)
@given(st.integers(0, 400), st.integers(1, 20))
def test_a_turn_that_is_tried_again_gives_the_same_to_the_byte(upto, size):
    learner = settings_of(snapshot_every_us=50)
    elements = [START, *elements_of(ROWS, size)]
    before = [bytes(data) for data in elements]
    *_, kept = learner.turn("q", None, elements, upto)
    assert list(learner.turn("q", None, elements, upto)) == list(
        learner.turn("q", None, elements, upto)
    )
    later = list(learner.turn("q", kept.cell, list(kept.waiting), None))
    assert later == list(learner.turn("q", kept.cell, list(kept.waiting), None))
    assert elements == before


@given(st.integers(0, 450))
def test_a_turn_asks_to_be_woken_for_what_waits_and_for_its_snapshot(upto):
    *_, kept = settings_of(snapshot_every_us=100).turn(
        "q", None, [START, *elements_of(ROWS, 50)], upto
    )
    waiting = [row["event_time"] for row in ROWS if row["event_time"] >= upto]
    stepped = [row["event_time"] for row in ROWS if row["event_time"] < upto]
    wakes = [min(waiting) + 1] if waiting else []
    if stepped and (end := (max(stepped) // 100 + 1) * 100) > upto:
        wakes.append(end)
    assert kept.wake_us == min(wakes, default=None)


def test_sessions_without_a_base_list_are_counted_and_give_no_row():
    outputs, counts = take_turns(settings_of(), "q", [(elements_of(ROWS, 9), None)])
    assert outputs == []
    assert counts == {"no_base_list": 40}


def test_the_first_session_in_event_time_gives_the_base_list():
    learner = settings_of(first_list=True)
    outputs, _ = take_turns(learner, "q", [(elements_of(ROWS[::-1], 7), None)])
    (statistic,) = read_tables(outputs, "statistic")
    assert statistic["initial"] == ROWS[0]["items"]


def test_lists_of_other_lengths_and_unknown_items_are_off_policy():
    odd = [
        {**ROWS[0], "session_id": "long", "items": [*ITEMS, "x"], "clicks": [True] * 6},
        {**ROWS[1], "session_id": "short", "items": ["a"], "clicks": [True]},
        {**ROWS[2], "session_id": "strange", "items": [*ITEMS[:4], "x"], "clicks": [True] * 5},
    ]
    outputs, counts = take_turns(settings_of(), "q", [([START, *elements_of(odd, 9)], None)])
    assert counts == {"off_policy": 3, "queries": 1}
    assert [row["step"] for row in read_tables(outputs, "statistic")] == [0]


def test_a_list_longer_than_k_shows_its_first_k():
    config = RankerConfig(3, delta=0.4)
    rows = make_log(sessions=50, config=config, spacing_us=SECOND)
    elements = [START, *elements_of(rows, 7)]
    outputs, _ = take_turns(Replay(config), "q", [(elements, 20 * SECOND), ([], None)])
    displays, statistics = expected(rows, config=config)
    assert [brief(row) for row in read_tables(outputs, "display")] == displays
    assert read_tables(outputs, "statistic") == statistics


def test_a_turn_without_elements_keeps_its_cell():
    learner = settings_of()
    *_, kept = learner.turn("q", None, [START], 5)
    assert list(learner.turn("q", kept.cell, [], 9)) == [Stepped(0), Kept(kept.cell)]
