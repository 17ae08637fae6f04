"""Counts of lists as arrays: query-item pairs numbered, positions known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bubblerank.sessions.lists import offsets_of

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Observations:
    """The table of `list_counts` in arrays; `list_*` by list, the others by (list, position).

    A pair is a (query, item); `pair_keys` are their sorted numbers query * items + item, and
    `pair` points into them.
    """

    queries: pa.Array
    items: pa.Array
    list_query: IntArray
    list_length: IntArray
    list_sessions: IntArray
    item: IntArray
    position: IntArray
    sessions: IntArray
    clicks: IntArray
    first: IntArray
    last: IntArray
    pair_keys: IntArray
    pair: IntArray

    @classmethod
    def of(cls, counts: pa.Table) -> Observations:
        """The arrays of a table by `list_counts.SCHEMA`, in canonical order."""
        batch = counts.combine_chunks().to_batches()
        if not batch:
            raise ValueError("there is nothing to fit: the log holds no accepted session")
        rows = batch[0]
        words = rows.column("items").flatten()
        lengths = pc.list_value_length(rows.column("items")).to_numpy().astype(np.int64)
        query = rows.column("query").indices.to_numpy().astype(np.int64)
        item = words.indices.to_numpy().astype(np.int64)
        sessions = rows.column("sessions").to_numpy()
        keys, pair = np.unique(
            np.repeat(query, lengths) * len(words.dictionary) + item, return_inverse=True
        )
        starts = offsets_of(lengths)[:-1]
        return cls(
            queries=rows.column("query").dictionary,
            items=words.dictionary,
            list_query=query,
            list_length=lengths,
            list_sessions=sessions,
            item=item,
            position=np.arange(len(item)) - np.repeat(starts, lengths),
            sessions=np.repeat(sessions, lengths),
            clicks=rows.column("clicks").flatten().to_numpy(),
            first=rows.column("first").flatten().to_numpy(),
            last=rows.column("last").flatten().to_numpy(),
            pair_keys=keys,
            pair=pair.reshape(-1),
        )

    @cached_property
    def positions(self) -> int:
        """The length of the longest list."""
        return int(self.list_length.max())

    @cached_property
    def list_start(self) -> IntArray:
        """Where each list begins in the arrays by (list, position)."""
        return offsets_of(self.list_length)[:-1]

    @cached_property
    def unclicked(self) -> IntArray:
        """By list, the sessions without a click."""
        clicked: IntArray = np.add.reduceat(self.first, self.list_start)
        return self.list_sessions - clicked

    def ended_before(self, ends: IntArray) -> IntArray:
        """By (list, position), the sessions whose `ends` (first or last click) lies above it."""
        total = np.cumsum(ends) - ends
        return total - np.repeat(total[self.list_start], self.list_length)

    def rectangles(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Lists of equal length: their numbers, and the places of their elements, row by row."""
        for width in np.unique(self.list_length).tolist():
            lists = np.flatnonzero(self.list_length == width)
            yield lists, self.list_start[lists][:, None] + np.arange(width)

    def pairs_in(self, other: Observations) -> IntArray:
        """For each element here, the number of its pair in `other`; -1 where that has none."""
        query = _codes_in(self.queries, other.queries)[np.repeat(self.list_query, self.list_length)]
        item = _codes_in(self.items, other.items)[self.item]
        keys = query * len(other.items) + item
        places = np.searchsorted(other.pair_keys, keys)
        places[places == len(other.pair_keys)] = 0
        known = (query >= 0) & (item >= 0) & (other.pair_keys[places] == keys)
        return np.where(known, places, -1)


def _codes_in(texts: pa.Array, known: pa.Array) -> IntArray:
    found: IntArray = pc.index_in(texts, known).fill_null(-1).to_numpy().astype(np.int64)
    return found
