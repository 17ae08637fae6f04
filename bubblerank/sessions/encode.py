"""From a table of accepted sessions to blocks: group by query, sort, cut, pack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bubblerank.sessions import layout
from bubblerank.sessions.lists import distinct_lists, first_rows, offsets_of, take_rows
from bubblerank.sessions.order import session_order

IntArray = npt.NDArray[np.int64]
DEFAULT_BLOCK_SESSIONS = 16_384


class EncodedBlock(NamedTuple):
    """One block of one query, and the event time of its earliest session."""

    query: str
    first_event_time_us: int
    data: bytes


class _Dictionaries(NamedTuple):
    """The distinct lists and items of all blocks, those of one block side by side."""

    list_id: npt.NDArray[np.int32]
    list_bounds: list[int]
    list_lengths: npt.NDArray[np.int32]
    list_item_bounds: list[int]
    list_items: npt.NDArray[np.int32]
    item_bounds: list[int]
    items: pa.StringArray


def encode_blocks(
    table: pa.RecordBatch, source: str, max_sessions: int = DEFAULT_BLOCK_SESSIONS
) -> Iterator[EncodedBlock]:
    """Blocks of at most `max_sessions` sessions of one query, in (event time, session id) order.

    `table` is by `validate.GOOD_SCHEMA`. All columns are sorted and numbered once for the whole
    table; a block is then a handful of slices.
    """
    if max_sessions < 1:
        raise ValueError(f"max_sessions must be at least 1, got {max_sessions}")
    if table.num_rows == 0:
        return
    query = table.column("query")
    query_codes = query.indices.to_numpy().astype(np.int64)
    times = table.column("event_time_us").to_numpy()
    ids = table.column("session_id")
    order = session_order(query_codes, times, ids)
    query_codes, times = query_codes[order], times[order]

    starts = _block_starts(query_codes, max_sessions)
    bounds = [*starts.tolist(), len(order)]
    block_of_row = np.repeat(np.arange(len(starts)), np.diff(bounds))
    lengths, item_codes = _sorted_lists(table.column("items"), order, indices=True)
    _, clicks = _sorted_lists(table.column("clicks"), order, indices=False)
    numbered = _number(item_codes, lengths, block_of_row, starts, table.column("items"))

    steps = table.column("step").to_numpy()[order]
    ids = ids.take(pa.array(order))
    id_offsets = _offsets(ids)
    item_offsets = _offsets(numbered.items)
    click_bounds = offsets_of(lengths)[bounds].tolist()
    id_bounds = id_offsets[bounds].tolist()
    text_bounds = item_offsets[numbered.item_bounds].tolist()
    any_step = np.maximum.reduceat(steps, starts) >= 0
    list_starts = numbered.list_bounds[:-1]
    shortest = np.minimum.reduceat(numbered.list_lengths, list_starts)
    uniform = shortest == np.maximum.reduceat(numbered.list_lengths, list_starts)
    flags = (any_step * layout.HAS_STEPS + uniform * layout.UNIFORM).tolist()

    time_view, position_view = _view(times), _view(table.column("position").to_numpy()[order])
    step_view, list_id_view = _view(steps), _view(numbered.list_id)
    id_length_view = _view(np.diff(id_offsets).astype(np.int32))
    list_length_view, list_item_view = _view(numbered.list_lengths), _view(numbered.list_items)
    item_length_view = _view(np.diff(item_offsets).astype(np.int32))
    click_view, id_view, text_view = _view(clicks), _blob(ids), _blob(numbered.items)
    source_text = source.encode("utf-8")
    source_length = np.int32(len(source_text)).tobytes()
    first_times = times[starts].tolist()
    queries = query.dictionary.take(pa.array(query_codes[starts])).to_pylist()

    for block, text in enumerate(queries):
        first, last = bounds[block], bounds[block + 1]
        first_list, last_list = numbered.list_bounds[block], numbered.list_bounds[block + 1]
        first_item, last_item = numbered.item_bounds[block], numbered.item_bounds[block + 1]
        in_lists, to_lists = numbered.list_item_bounds[block], numbered.list_item_bounds[block + 1]
        query_text = text.encode("utf-8")
        header = layout.Header(
            flags[block],
            last - first,
            last_list - first_list,
            last_item - first_item,
            1,
            len(query_text),
            len(source_text),
            to_lists - in_lists,
            click_bounds[block + 1] - click_bounds[block],
            id_bounds[block + 1] - id_bounds[block],
            text_bounds[block + 1] - text_bounds[block],
        )
        parts = [
            time_view[8 * first : 8 * last],
            position_view[8 * first : 8 * last],
            step_view[8 * first : 8 * last] if header.flags & layout.HAS_STEPS else b"",
            list_id_view[4 * first : 4 * last],
            id_length_view[4 * first : 4 * last],
            b""
            if header.flags & layout.UNIFORM
            else list_length_view[4 * first_list : 4 * last_list],
            list_item_view[4 * in_lists : 4 * to_lists],
            item_length_view[4 * first_item : 4 * last_item],
            source_length,
            click_view[click_bounds[block] : click_bounds[block + 1]],
            id_view[id_bounds[block] : id_bounds[block + 1]],
            text_view[text_bounds[block] : text_bounds[block + 1]],
            query_text,
            source_text,
        ]
        yield EncodedBlock(text, first_times[block], layout.pack(header, parts))


def _block_starts(query_codes: IntArray, max_sessions: int) -> IntArray:
    """Where blocks begin in rows sorted by query: at each new query, and every `max_sessions`."""
    query_starts = np.flatnonzero(np.diff(query_codes, prepend=-1))
    place = np.arange(len(query_codes)) - np.repeat(
        query_starts, np.diff(query_starts, append=len(query_codes))
    )
    return np.flatnonzero(place % max_sessions == 0)


def _sorted_lists(
    lists: pa.ListArray, order: IntArray, *, indices: bool
) -> tuple[IntArray, npt.NDArray[Any]]:
    values = lists.flatten()
    flat = (values.indices if indices else values).to_numpy()
    lengths = np.diff(lists.offsets.to_numpy()).astype(np.int64)
    return lengths[order], take_rows(flat, lengths, order)


def _number(
    codes: npt.NDArray[np.int32],
    lengths: IntArray,
    block_of_row: IntArray,
    starts: IntArray,
    items: pa.ListArray,
) -> _Dictionaries:
    """Number lists and items within each block, in the order of their first appearance.

    Rows come block by block, so numbers given in order of appearance over all blocks are
    contiguous within a block, and a block's own numbers count from its first.
    """
    lists = distinct_lists(codes, lengths, block_of_row)
    firsts = lists.first_row
    blocks = len(starts)
    list_bounds = np.searchsorted(block_of_row[firsts], np.arange(blocks + 1))
    list_id = lists.list_of_row - list_bounds[block_of_row].astype(np.int32)

    list_lengths = lengths[firsts]
    list_codes = take_rows(codes, lengths, firsts)
    block_of_code = np.repeat(block_of_row[firsts], list_lengths)
    pairs = (block_of_code.astype(np.uint64) << np.uint64(32)) | list_codes.astype(np.uint64)
    numbers = pa.array(pairs).dictionary_encode().indices.to_numpy()
    item_firsts = first_rows(numbers)
    item_bounds = np.searchsorted(block_of_code[item_firsts], np.arange(blocks + 1))
    list_items = numbers - item_bounds[block_of_code].astype(np.int32)
    words = items.values.dictionary.take(pa.array(list_codes[item_firsts]))
    return _Dictionaries(
        list_id,
        list_bounds.tolist(),
        list_lengths.astype(np.int32),
        offsets_of(list_lengths)[list_bounds].tolist(),
        list_items,
        item_bounds.tolist(),
        words,
    )


def _offsets(text: pa.StringArray) -> npt.NDArray[np.int32]:
    """Offsets of a string array that nobody sliced."""
    return np.frombuffer(text.buffers()[1], dtype=np.int32)[: len(text) + 1]


def _blob(text: pa.StringArray) -> memoryview:
    buffer = text.buffers()[2]
    return memoryview(buffer if buffer is not None else b"")


def _view(array: npt.NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).data.cast("B")
