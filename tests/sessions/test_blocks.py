import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblerank.sessions import layout
from bubblerank.sessions.block import decode
from bubblerank.sessions.encode import encode_blocks
from bubblerank.sessions.merge import merge
from tests.sessions.strategies import good_batch, key, sessions


def rows_of(block):
    return [json.loads(block.to_payload(i)) for i in range(len(block))]


def blocks_of(rows, max_sessions=1000, source="log.jsonl", first_position=1):
    return list(encode_blocks(good_batch(rows, first_position), source, max_sessions))


def content(row):
    return json.dumps(row, sort_keys=True)


@given(st.lists(sessions(), max_size=40), st.integers(1, 7))
def test_blocks_hold_every_session_once_grouped_by_query_and_sorted_as_python_sorts(rows, most):
    found = defaultdict(list)
    for query, first_time, data in blocks_of(rows, most):
        block = decode(data)
        assert block.query == query
        assert 1 <= len(block) <= most
        assert first_time == block.event_time_us.min()
        found[query] += rows_of(block)
    for query in {row["query"] for row in rows}:
        expected = [row for row in rows if row["query"] == query]
        assert [key(row) for row in found[query]] == sorted(key(row) for row in expected)
        assert sorted(map(content, found[query])) == sorted(map(content, expected))
    assert sum(map(len, found.values())) == len(rows)


@given(st.lists(sessions(), min_size=1, max_size=30))
def test_a_block_keeps_each_sessions_position_and_source(rows):
    for _, _, data in blocks_of(rows, first_position=100):
        block = decode(data)
        for i, row in enumerate(rows_of(block)):
            assert rows[int(block.position[i]) - 100] == row
            assert block.source_of(i) == "log.jsonl"


@given(st.lists(sessions(), min_size=1, max_size=30))
def test_a_block_names_each_list_and_each_item_once(rows):
    for _, _, data in blocks_of(rows):
        block = decode(data)
        lists = {block.list_of(i) for i in range(len(block))}
        assert len(block.list_lengths) == len(lists)
        assert len(block.items) == len(set(block.items))
        assert set(block.items) == {item for shown in lists for item in shown}


@given(st.lists(sessions(("q",)), min_size=1, max_size=30), st.integers(1, 5), st.randoms())
def test_merging_blocks_in_any_order_gives_the_same_sessions_in_order(rows, pieces, random):
    blocks = []
    for number in range(pieces):
        part = rows[number::pieces]
        blocks += [decode(data) for _, _, data in blocks_of(part, 4, f"f{number}", 1)]
    whole = merge(blocks)
    random.shuffle(blocks)
    again = merge(blocks)
    assert rows_of(whole) == rows_of(again)
    assert [key(row) for row in rows_of(whole)] == sorted(map(key, rows))
    assert sorted(map(content, rows_of(whole))) == sorted(map(content, rows))
    for i, row in enumerate(rows_of(again)):
        number = int(again.source_of(i)[1:])
        assert rows[number::pieces][int(again.position[i]) - 1] == row
    assert len(whole.list_lengths) == len({tuple(row["items"]) for row in rows})


@given(st.lists(sessions(("q",)), min_size=1, max_size=20), st.data())
def test_selecting_by_mask_is_selecting_rows(rows, data):
    block = decode(blocks_of(rows)[0].data)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    chosen = [row for row, taken in zip(rows_of(block), mask, strict=True) if taken]
    assert rows_of(block.select(mask)) == chosen
    assert rows_of(block.select(np.flatnonzero(mask))) == chosen


@given(st.lists(sessions(("q",)), min_size=1, max_size=20))
def test_a_merged_block_written_and_read_again_is_the_same(rows):
    halves = [b for n in (0, 1) for b in blocks_of(rows[n::2], source=f"f{n}")]
    whole = merge([decode(half.data) for half in halves])
    again = decode(whole.to_bytes())
    assert rows_of(again) == rows_of(whole)
    assert again.sources == whole.sources
    assert again.source_id.tolist() == whole.source_id.tolist()


@given(st.lists(sessions(), min_size=1, max_size=20))
def test_both_writers_of_the_format_write_the_same_bytes(rows):
    for _, _, data in blocks_of(rows):
        assert decode(data).to_bytes() == data


def one_block():
    row = {"query": "q", "session_id": "s", "event_time": 1, "items": ["a", "b"]}
    return blocks_of([{**row, "clicks": [True, False], "step": None}])[0].data


def test_lists_of_one_length_are_rectangles():
    block = decode(one_block())
    assert block.width == 2
    assert block.lists.tolist() == [[0, 1]]
    assert block.click_matrix.tolist() == [[1, 0]]
    assert block.step.tolist() == [-1]


def test_lists_of_several_lengths_have_no_rectangle():
    row = {"query": "q", "session_id": "s", "event_time": 1, "step": None}
    block = decode(
        blocks_of(
            [
                {**row, "items": ["a", "b"], "clicks": [True, False]},
                {**row, "event_time": 2, "items": ["b"], "clicks": [True]},
            ]
        )[0].data
    )
    assert block.width is None
    assert block.list_offsets.tolist() == [0, 2, 3]
    assert block.click_offsets.tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="not equally long"):
        _ = block.lists


@given(st.integers(0, len(one_block()) - 1))
def test_a_block_cut_short_is_refused(length):
    with pytest.raises(ValueError, match=r"cut off|not a block"):
        decode(one_block()[:length])


@given(st.integers(0, len(one_block()) - 1), st.integers(1, 255))
@settings(max_examples=300)
def test_a_block_with_a_changed_byte_is_refused(place, change):
    data = bytearray(one_block())
    data[place] ^= change
    with pytest.raises(ValueError, match=r"block"):
        decode(bytes(data))


def test_another_version_is_named():
    data = bytearray(one_block())
    data[4] = layout.VERSION + 1
    with pytest.raises(ValueError, match="version must be 1, got 2"):
        decode(bytes(data))


def test_merge_refuses_nothing_and_different_queries():
    with pytest.raises(ValueError, match="at least one"):
        merge([])
    row = {"session_id": "s", "event_time": 1, "items": ["a"], "clicks": [True], "step": 3}
    blocks = blocks_of([{**row, "query": "q"}, {**row, "query": "r"}])
    with pytest.raises(ValueError, match="2 queries"):
        merge([decode(block.data) for block in blocks])


def test_blocks_of_no_sessions_are_refused():
    with pytest.raises(ValueError, match="max_sessions must be at least 1, got 0"):
        blocks_of([], 0)


def test_arrays_are_aligned_for_compiled_code():
    rows = [
        {"query": "q" * n, "session_id": "x" * n, "event_time": n, "items": ["a"], "clicks": [True]}
        for n in range(1, 6)
    ]
    for _, _, data in blocks_of([{**row, "step": 1} for row in rows]):
        block = decode(data)
        for array in (block.event_time_us, block.step, block.list_id, block.list_items):
            assert array.flags.aligned
