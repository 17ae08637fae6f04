import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblerank.stream.outputs import Kept, Output
from bubblerank.stream.replay import Replay
from bubblerank.stream.rounds import CARRY, NEVER_US, Carry, Round, stamp
from bubblerank.stream.start import Start
from tests.stream.logs import CONFIG, ITEMS, blocks_of, make_log, read_tables, take_turns

START = Start(ITEMS).to_bytes()
ROWS = make_log(sessions=40, spacing_us=10)
LEARNER = Replay(CONFIG, duplicate_memory=1000, snapshot_every_us=70)


def take_rounds(rounds):
    """Outputs and counts of rounds given as (new elements, watermark); the last one is last."""
    carry, outputs, counts = [], [], {}
    for number, (elements, watermark_us) in enumerate(rounds, 1):
        last = number == len(rounds)
        stamped = [stamp(data, watermark_us) for data in [*carry, *elements]]
        *found, kept = Round(LEARNER, last).turn("q", None, stamped, None)
        assert isinstance(kept, Kept)
        assert (kept.cell, kept.waiting) == (b"", ())
        carry = [x.data for x in found if isinstance(x, Output) and x.kind == CARRY]
        assert len(carry) == (0 if last else 1)
        outputs += found
        for name, count in kept.counts.items():
            counts[name] = counts.get(name, 0) + count
    return outputs, counts


@settings(max_examples=30)
@given(st.lists(st.integers(1, 399), max_size=4, unique=True), st.integers(1, 20))
def test_rounds_end_in_the_rows_of_one_turn(cuts, size):
    rounds, low = [([START], NEVER_US)], 0
    for high in [*sorted(cuts), 400]:
        rows = [row for row in ROWS if low <= row["event_time"] < high]
        newest = max([row["event_time"] for row in rows], default=low)
        rounds.append(([data for _, _, data in blocks_of(rows[::-1], size)], newest))
        low = high
    outputs, counts = take_rounds([*rounds, ([], 400)])
    whole = [START, *(data for _, _, data in blocks_of(ROWS))]
    one, one_counts = take_turns(LEARNER, "q", [(whole, None)])
    for kind in ("display", "statistic", "reject"):
        assert read_tables(outputs, kind) == read_tables(one, kind)
    assert counts == one_counts


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.lists(st.binary(), max_size=3).map(tuple),
    st.none() | st.integers(-(2**62), 2**62),
)
def test_a_carry_comes_back_from_its_bytes(key, cell, waiting, wake_us):
    carry = Carry(key, cell, waiting, wake_us)
    assert Carry.from_bytes(carry.to_bytes()) == carry


@settings(max_examples=30)
@given(st.integers(0, 399), st.integers(0, 500))
def test_a_query_sleeps_only_as_long_as_a_turn_would_change_nothing(first, second):
    elements = [START, *(data for _, _, data in blocks_of(ROWS))]
    *_, kept = LEARNER.turn("q", None, elements, first)
    carry = Carry("q", kept.cell, kept.waiting, kept.wake_us)
    *outputs, after = LEARNER.turn("q", kept.cell, list(kept.waiting), max(first, second))
    if carry.sleeps(max(first, second)):
        assert not [output for output in outputs if isinstance(output, Output)]
        assert after == kept._replace(counts={})


def test_rounds_that_cannot_be_are_refused():
    carry = stamp(Carry("q", b"").to_bytes(), 5)
    for elements, upto_us, complaint in (
        ([carry, carry], None, "carried on 2 times"),
        ([carry, stamp(START, 6)], None, "one watermark"),
        ([carry], 5, "one turn"),
    ):
        with pytest.raises(ValueError, match=complaint):
            list(Round(LEARNER).turn("q", None, elements, upto_us))
