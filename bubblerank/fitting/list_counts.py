"""Sufficient statistics of a click log: one row for each list that a query displayed.

CM, DCM and PBM see a session only through its list, the places of its clicks, and the places of
its first and last click. So these counts, summed over the sessions of a list, are all that
fitting and evaluating need; they are whole numbers, and add up in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bubblerank.sessions.block import Block
from bubblerank.sessions.lists import distinct_lists, offsets_of, take_rows, uniform_width

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]

_TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("query", _TEXT),
        pa.field("items", pa.list_(_TEXT)),
        pa.field("sessions", pa.int64()),
        pa.field("clicks", pa.list_(pa.int64())),
        pa.field("first", pa.list_(pa.int64())),
        pa.field("last", pa.list_(pa.int64())),
    ]
)
"""`clicks`, `first` and `last` are aligned with `items`: how many sessions clicked there, had
their first click there, and their last."""

_PENDING_ROWS = 100_000
_PADDED_CELLS = 100_000_000


class CountLists:
    """The counts as an aggregate: create, add, merge, extract; how it is cut shows nowhere.

    An accumulator is a list of tables; it is made compact whenever it has doubled.
    """

    def create(self) -> list[pa.Table]:
        """Nothing counted yet."""
        return []

    def add(self, counted: list[pa.Table], more: pa.Table) -> list[pa.Table]:
        """Add the counts of a table or of a block."""
        return self.merge([counted, [more]])

    def merge(self, accumulators: Iterable[list[pa.Table]]) -> list[pa.Table]:
        """Several accumulators as one."""
        tables = [table for counted in accumulators for table in counted]
        rows = [table.num_rows for table in tables]
        if len(tables) > 1 and sum(rows) - max(rows) > max(_PENDING_ROWS, *rows):
            return [merge_counts(tables)]
        return tables

    def extract(self, counted: list[pa.Table]) -> pa.Table:
        """The counts, in their one canonical order."""
        return merge_counts(counted)


def count_table(good: pa.RecordBatch) -> pa.Table:
    """The counts of accepted sessions, by `bubblerank.sessions.validate.GOOD_SCHEMA`."""
    items, clicks = good.column("items"), good.column("clicks")
    words = items.flatten()
    lengths = pc.list_value_length(items).to_numpy(zero_copy_only=False).astype(np.int64)
    return _count(
        good.column("query").dictionary,
        good.column("query").indices.to_numpy().astype(np.int64),
        words.dictionary,
        words.indices.to_numpy(),
        lengths,
        clicks.flatten().to_numpy(),
    )


def count_block(block: Block) -> pa.Table:
    """The counts of a block."""
    lengths = block.list_lengths.astype(np.int64)
    return _sum_up(
        pa.array([block.query], pa.string()),
        np.zeros(len(lengths), np.int64),
        pa.array(block.items, pa.string()),
        block.list_items,
        lengths,
        block.list_id.astype(np.int64),
        block.clicks,
    )


def merge_counts(tables: Sequence[pa.Table]) -> pa.Table:
    """All counts together: by query, then the most frequent list first, then by its items.

    Dictionaries are sorted by the bytes of their texts, so that equal counts are equal tables
    however they came about.
    """
    if not tables:
        return SCHEMA.empty_table()
    together = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    if together.num_rows == 0:
        return SCHEMA.empty_table()
    (batch,) = together.to_batches()
    queries, codes = _sorted_codes(batch.column("query"))
    query_codes = codes.astype(np.int64)
    items, item_codes = _sorted_codes(batch.column("items").flatten())
    lengths = pc.list_value_length(batch.column("items")).to_numpy(zero_copy_only=False)
    lengths = lengths.astype(np.int64)
    number, first_row = distinct_lists(item_codes, lengths, query_codes)
    sessions = np.bincount(number, batch.column("sessions").to_numpy()).astype(np.int64)
    kept_lengths = lengths[first_row]
    places = _places(kept_lengths, number, lengths)
    sums = [
        np.bincount(places, batch.column(name).flatten().to_numpy(), kept_lengths.sum())
        for name in ("clicks", "first", "last")
    ]
    kept_items = take_rows(item_codes, lengths, first_row)
    order = _canonical_order(query_codes[first_row], sessions, kept_items, kept_lengths)
    return _table(
        queries,
        query_codes[first_row][order],
        items,
        take_rows(kept_items, kept_lengths, order),
        kept_lengths[order],
        sessions[order],
        [take_rows(column.astype(np.int64), kept_lengths, order) for column in sums],
    )


def _count(
    queries: pa.Array,
    query_codes: IntArray,
    items: pa.Array,
    item_codes: CodeArray,
    lengths: IntArray,
    clicks: npt.NDArray[np.uint8],
) -> pa.Table:
    number, first_row = distinct_lists(item_codes, lengths, query_codes)
    return _sum_up(
        queries,
        query_codes[first_row],
        items,
        take_rows(item_codes, lengths, first_row),
        lengths[first_row],
        number.astype(np.int64),
        clicks,
    )


def _sum_up(
    queries: pa.Array,
    query_of_list: IntArray,
    items: pa.Array,
    list_items: CodeArray,
    list_lengths: IntArray,
    list_of_session: IntArray,
    clicks: npt.NDArray[np.uint8],
) -> pa.Table:
    """Counts by list, from the list of each session and the clicks of all sessions."""
    lengths = list_lengths[list_of_session]
    places = _places(list_lengths, list_of_session, lengths)
    size = int(list_lengths.sum())
    clicked = np.flatnonzero(clicks)
    session = np.repeat(np.arange(len(lengths)), lengths)[clicked]
    starts = np.diff(session, prepend=-1) > 0
    ends = np.diff(session, append=-1) != 0
    at = places[clicked]
    return _table(
        queries,
        query_of_list,
        items,
        list_items,
        list_lengths,
        np.bincount(list_of_session, minlength=len(list_lengths)),
        [np.bincount(found, minlength=size) for found in (at, at[starts], at[ends])],
    )


def _places(
    list_lengths: IntArray, list_of_row: npt.NDArray[np.integer], lengths: IntArray
) -> IntArray:
    """For every element of every row, its place among the elements of the distinct lists."""
    begins = offsets_of(list_lengths)[:-1][list_of_row]
    width = uniform_width(lengths)
    if width is not None:
        rectangle: IntArray = begins[:, None] + np.arange(width)
        return rectangle.reshape(-1)
    ends = np.cumsum(lengths)
    within = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
    return np.repeat(begins, lengths) + within


def _sorted_codes(column: pa.DictionaryArray) -> tuple[pa.Array, CodeArray]:
    """The texts in use, sorted by their bytes, and the number of each row's text."""
    codes = column.indices.to_numpy().astype(np.int64)
    used = np.unique(codes)
    texts = column.dictionary.take(pa.array(used))
    order = pc.sort_indices(texts.cast(pa.binary())).to_numpy().astype(np.int64)
    rank = np.zeros(len(column.dictionary), dtype=np.int64)
    rank[used[order]] = np.arange(len(used))
    return texts.take(pa.array(order)), rank[codes].astype(np.int32)


def _canonical_order(
    query_codes: IntArray, sessions: IntArray, item_codes: CodeArray, lengths: IntArray
) -> IntArray:
    """By query, then frequent lists first, then by items, a list before its continuations."""
    longest = int(lengths.max())
    if longest * len(lengths) > _PADDED_CELLS:
        return _order_by_bytes(query_codes, sessions, item_codes, lengths)
    padded = np.full((len(lengths), longest), -1, dtype=np.int32)
    padded[np.arange(longest) < lengths[:, None]] = item_codes
    return np.lexsort((*padded.T[::-1], -sessions, query_codes))


def _order_by_bytes(
    query_codes: IntArray, sessions: IntArray, item_codes: CodeArray, lengths: IntArray
) -> IntArray:
    """The same order without padding, for logs with some very long lists."""
    text = item_codes.astype(">i4").tobytes()
    bounds = (4 * offsets_of(lengths)).tolist()
    keys = zip(query_codes.tolist(), (-sessions).tolist(), pairwise(bounds), strict=True)
    ordered = [(query, often, text[first:last]) for query, often, (first, last) in keys]
    return np.array(sorted(range(len(ordered)), key=ordered.__getitem__), dtype=np.int64)


def _table(
    queries: pa.Array,
    query_codes: IntArray,
    items: pa.Array,
    item_codes: npt.NDArray[np.integer],
    lengths: IntArray,
    sessions: IntArray,
    counts: Sequence[IntArray],
) -> pa.Table:
    offsets = pa.array(offsets_of(lengths).astype(np.int32))
    words = pa.DictionaryArray.from_arrays(pa.array(item_codes.astype(np.int32)), items)
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(query_codes.astype(np.int32)), queries),
        pa.ListArray.from_arrays(offsets, words),
        pa.array(sessions.astype(np.int64)),
        *(
            pa.ListArray.from_arrays(offsets, pa.array(column.astype(np.int64)))
            for column in counts
        ),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
