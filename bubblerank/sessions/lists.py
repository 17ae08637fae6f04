"""Ragged rows of item codes: which are equal, which repeat a code, and how to gather them."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]
Element = TypeVar("Element", bound=np.generic)

_MULTIPLIERS = np.random.default_rng(0x5E55).integers(
    0, 2**64, size=1024, dtype=np.uint64, endpoint=False
) | np.uint64(1)

_COMPARED_WIDTH = 16
"""Up to this width, comparing all pairs of places is quicker than sorting."""


class DistinctLists(NamedTuple):
    """Lists numbered in the order of their first row."""

    list_of_row: CodeArray
    first_row: IntArray


def offsets_of(lengths: npt.NDArray[np.integer]) -> IntArray:
    """Where each row begins in the flat array, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    offsets[1:] = lengths
    return offsets.cumsum(out=offsets)


def uniform_width(lengths: npt.NDArray[np.integer]) -> int | None:
    """The common length of all rows, or None."""
    if len(lengths) == 0:
        return None
    width = int(lengths[0])
    return width if bool((lengths == width).all()) else None


def gather_index(offsets: IntArray, rows: IntArray) -> IntArray:
    """The flat index of every element of `rows`, one row after the other."""
    lengths = offsets[rows + 1] - offsets[rows]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    index: IntArray = np.arange(total, dtype=np.int64)
    index += np.repeat(offsets[rows] - (ends - lengths), lengths)
    return index


def take_rows(
    flat: npt.NDArray[Element], lengths: npt.NDArray[np.integer], rows: IntArray
) -> npt.NDArray[Element]:
    """The elements of `rows`, one row after the other."""
    width = uniform_width(lengths)
    if width is not None:
        return flat.reshape(-1, width)[rows].reshape(-1)
    return flat[gather_index(offsets_of(lengths), rows)]


def distinct_lists(codes: CodeArray, lengths: IntArray, groups: IntArray) -> DistinctLists:
    """Number the distinct (group, list) pairs; each row has 1 to 1,000 codes.

    Rows meet by a 64-bit linear hash, and every row is then compared with the first row of its
    number, so that two lists that collide are told apart all the same.
    """
    rows = len(lengths)
    width = uniform_width(lengths)
    if width is not None:
        hashes = codes.reshape(rows, width).astype(np.uint64) @ _MULTIPLIERS[:width]
    else:
        offsets = offsets_of(lengths)
        places = np.arange(len(codes)) - np.repeat(offsets[:-1], lengths)
        hashes = np.add.reduceat(codes.astype(np.uint64) * _MULTIPLIERS[places], offsets[:-1])
    hashes += groups.astype(np.uint64) * _MULTIPLIERS[1001]
    hashes += lengths.astype(np.uint64) * _MULTIPLIERS[1002]
    numbers = pa.array(hashes).dictionary_encode().indices.to_numpy()
    firsts = first_rows(numbers)
    if not _all_as_first(codes, lengths, groups, numbers, firsts, width):
        numbers = _number_exactly(codes, lengths, groups)
        firsts = first_rows(numbers)
    return DistinctLists(numbers, firsts)


def first_rows(numbers: CodeArray) -> IntArray:
    """The first row of each number, where numbers appear in the order 0, 1, 2, ..."""
    if len(numbers) == 0:
        return np.zeros(0, dtype=np.int64)
    highest = np.maximum.accumulate(numbers)
    return np.flatnonzero(np.diff(highest, prepend=-1))


def _all_as_first(
    codes: CodeArray,
    lengths: IntArray,
    groups: IntArray,
    numbers: CodeArray,
    firsts: IntArray,
    width: int | None,
) -> bool:
    like = firsts[numbers]
    if not (np.array_equal(lengths, lengths[like]) and np.array_equal(groups, groups[like])):
        return False
    if width is not None:
        table = codes.reshape(-1, width)
        return np.array_equal(table, table[firsts][numbers])
    return np.array_equal(codes, codes[gather_index(offsets_of(lengths), like)])


def _number_exactly(codes: CodeArray, lengths: IntArray, groups: IntArray) -> CodeArray:
    offsets = offsets_of(lengths).tolist()
    known: dict[tuple[int, bytes], int] = {}
    numbers = np.empty(len(lengths), dtype=np.int32)
    for row, group in enumerate(groups.tolist()):
        key = (group, codes[offsets[row] : offsets[row + 1]].tobytes())
        numbers[row] = known.setdefault(key, len(known))
    return numbers


def rows_with_repeats(codes: CodeArray, lengths: IntArray) -> IntArray:
    """The rows that hold some code twice."""
    width = uniform_width(lengths)
    if width is not None and width <= _COMPARED_WIDTH:
        places = np.ascontiguousarray(codes.reshape(-1, width).T)
        repeats = np.zeros(len(lengths), dtype=np.bool_)
        for place in range(1, width):
            for upper in range(place):
                repeats |= places[place] == places[upper]
        return np.flatnonzero(repeats)
    rows = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    packed = np.sort((rows << np.uint64(32)) | codes.astype(np.uint64))
    found = packed[1:][packed[1:] == packed[:-1]] >> np.uint64(32)
    return np.unique(found).astype(np.int64)
