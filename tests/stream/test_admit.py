import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bubblerank.sessions.block import decode
from bubblerank.sessions.encode import encode_blocks
from bubblerank.sessions.merge import merge
from bubblerank.stream.admit import admit, first_occurrences, remember, rows_until
from bubblerank.stream.cell import Cell
from tests.sessions.strategies import good_batch

IDS = st.sampled_from(["a", "b", "ab", "é", "😀", "z", "zz"])
TIMES = st.integers(-3, 6)
PLACES = st.tuples(TIMES, IDS)


def block_of(places):
    rows = [
        {
            "query": "q",
            "session_id": session_id,
            "event_time": time_us,
            "items": ["x", "y"],
            "clicks": [False, True],
            "step": None,
        }
        for time_us, session_id in places
    ]
    return merge([decode(block.data) for block in encode_blocks(good_batch(rows), "log")])


def places_of(block):
    return list(zip(block.event_time_us.tolist(), block.session_ids, strict=True))


def naive(places, frontier, recent):
    """One session at a time: duplicates first, then what comes too late."""
    admitted, late, duplicates, seen = [], [], 0, set(recent)
    for place in sorted(places, key=lambda place: (place[0], place[1].encode())):
        if place[1] in seen:
            duplicates += 1
            continue
        seen.add(place[1])
        passed = frontier is not None and (place[0], place[1].encode()) <= (
            frontier[0],
            frontier[1].encode(),
        )
        (late if passed else admitted).append(place)
    return admitted, late, duplicates


@given(
    st.lists(PLACES, min_size=1, max_size=12),
    st.none() | PLACES,
    st.lists(IDS, max_size=3, unique=True).map(tuple),
)
def test_admit_does_as_one_session_at_a_time(places, frontier, recent):
    block = block_of(places)
    found = admit(block, Cell(frontier=frontier, recent=recent))
    admitted, late, duplicates = naive(places, frontier, recent)
    assert places_of(found.block) == admitted
    assert places_of(block.select(found.late)) == late
    assert found.duplicates == duplicates
    assert len(found.block) + len(found.late) + found.duplicates == len(places)


@given(st.lists(PLACES, min_size=1, max_size=12), PLACES)
def test_rows_until_counts_what_is_not_after_a_place(places, frontier):
    limit = frontier[0], frontier[1].encode()
    count = sum((time_us, name.encode()) <= limit for time_us, name in places)
    assert rows_until(block_of(places), frontier) == count


@given(st.lists(IDS, max_size=12))
def test_first_occurrences_are_those_of_a_set(ids):
    seen = set()
    first = [not (name in seen or seen.add(name)) for name in ids]
    assert first_occurrences(pa.array(ids, pa.large_string())).tolist() == first


@given(st.lists(PLACES, min_size=1, max_size=12), st.lists(IDS, max_size=5), st.integers(0, 9))
def test_the_memory_holds_the_newest_ids(places, recent, memory):
    block = block_of(places)
    everything = [*recent, *block.session_ids]
    kept = remember(Cell(recent=tuple(recent)), block, memory)
    assert list(kept) == everything[len(everything) - min(memory, len(everything)) :]
