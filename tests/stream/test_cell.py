import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblerank.stream import frames
from bubblerank.stream.cell import NO_INTERVAL, Cell
from bubblerank.stream.start import Start, pack_strings, unpack_strings

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
TEXTS = st.lists(TEXT, max_size=8).map(tuple)
TIMES = st.integers(-(2**62), 2**62)
CELLS = st.builds(
    Cell,
    items=TEXTS,
    state=st.binary(max_size=300),
    frontier=st.none() | st.tuples(TIMES, TEXT),
    recent=TEXTS,
    interval=st.just(NO_INTERVAL) | TIMES,
    seen=st.booleans(),
)


@given(CELLS)
def test_a_cell_comes_back_from_its_bytes(cell):
    assert Cell.from_bytes(cell.to_bytes()) == cell


@given(TEXTS, st.binary(max_size=300))
def test_a_start_comes_back_from_its_bytes(items, state):
    assert Start.from_bytes(Start(items, state).to_bytes()) == Start(items, state)


@given(TEXTS)
def test_strings_come_back_from_their_bytes(strings):
    assert unpack_strings(pack_strings(strings)) == strings


@given(st.lists(st.binary(max_size=50), max_size=6))
def test_frames_keep_their_fields_apart(fields):
    data = frames.pack(b"TEST", 3, fields)
    assert frames.tag_of(data) == b"TEST"
    assert frames.unpack(b"TEST", 3, data) == fields


@given(CELLS, st.data())
def test_damaged_bytes_are_refused(cell, data):
    whole = cell.to_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :]
    for damaged in (flipped, whole[:place], whole + b"x"):
        with pytest.raises(ValueError, match="CELL"):
            Cell.from_bytes(damaged)


def test_another_version_is_told_by_its_number():
    data = frames.pack(b"CELL", 9, [])
    with pytest.raises(ValueError, match="version 9, this release reads version 1"):
        Cell.from_bytes(data)
    with pytest.raises(ValueError, match="expected STRT, got bytes that start with b'CELL'"):
        Start.from_bytes(data)


def test_a_cell_of_ten_items_and_full_memory_stays_small():
    recent = tuple(f"session-{n:08d}" for n in range(64))
    cell = Cell(tuple(f"item-{n}" for n in range(10)), b"s" * 600, (1, recent[-1]), recent)
    assert len(cell.to_bytes()) < 2200
