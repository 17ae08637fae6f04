"""The order in which sessions step: by event time, then by session id."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

IntArray = npt.NDArray[np.int64]
_SMALL = 500


def session_order(groups: IntArray | None, times: IntArray, session_ids: pa.Array) -> IntArray:
    """The rows sorted by (group, event time, UTF-8 bytes of the session id), stable.

    UTF-8 bytes sort as code points do. Session ids are looked at only where times are equal.
    """
    order = argsort(times)
    if groups is not None:
        order = order[argsort(groups[order])]
    sorted_times = times[order]
    tied = sorted_times[1:] == sorted_times[:-1]
    if groups is not None:
        sorted_groups = groups[order]
        tied &= sorted_groups[1:] == sorted_groups[:-1]
    if tied.any():
        order = _settle_ties(order, tied, session_ids)
    return order


def argsort(keys: IntArray) -> IntArray:
    """A stable argsort of int64 keys: key and row packed into one word where both fit."""
    count = len(keys)
    if count < _SMALL:
        return np.argsort(keys, kind="stable")
    if bool((keys[1:] >= keys[:-1]).all()):
        return np.arange(count, dtype=np.int64)
    row_bits = count.bit_length()
    low, high = int(keys.min()), int(keys.max())
    if (high - low).bit_length() + row_bits > 64:
        return np.argsort(keys, kind="stable")
    packed = (keys - low).astype(np.uint64) << np.uint64(row_bits)
    packed |= np.arange(count, dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64((1 << row_bits) - 1)).astype(np.int64)


def _settle_ties(order: IntArray, tied: npt.NDArray[np.bool_], session_ids: pa.Array) -> IntArray:
    in_run = np.zeros(len(order), dtype=np.bool_)
    in_run[1:] |= tied
    in_run[:-1] |= tied
    places = np.flatnonzero(in_run)
    run_starts = np.ones(len(order), dtype=np.bool_)
    run_starts[1:] = ~tied
    runs = np.cumsum(run_starts)[places]
    rows = order[places]
    by_id = pc.sort_indices(session_ids.take(pa.array(rows))).to_numpy().astype(np.int64)
    settled = by_id[argsort(runs[by_id])]
    result = order.copy()
    result[places] = rows[settled]
    return result
