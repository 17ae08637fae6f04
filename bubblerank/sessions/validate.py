"""Tell the sessions of a raw log from its rejects, column by column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bubblerank.sessions import columns
from bubblerank.sessions.lists import offsets_of, rows_with_repeats
from bubblerank.sessions.payloads import payloads
from bubblerank.sessions.rejects import Reason, RejectRows

MAX_ITEMS = 1000
REQUIRED = ("query", "session_id", "event_time", "items", "clicks")
COLUMNS = (*REQUIRED, "step")

GOOD_SCHEMA = pa.schema(
    [
        pa.field("query", pa.dictionary(pa.int32(), pa.string())),
        pa.field("session_id", pa.string()),
        pa.field("event_time_us", pa.int64()),
        pa.field("items", pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        pa.field("clicks", pa.list_(pa.uint8())),
        pa.field("step", pa.int64()),
        pa.field("position", pa.int64()),
    ]
)
"""Accepted sessions: nothing is null, `clicks` are 0 or 1, an unknown `step` is -1."""

DETAILS = {
    Reason.WRONG_TYPE: "text that is not UTF-8, or a click that is neither true nor false",
    Reason.MISSING_QUERY: "query is null or empty",
    Reason.MISSING_SESSION_ID: "session_id is null or empty",
    Reason.BAD_EVENT_TIME: "event_time is null, unreadable or outside the years 1 to 9999",
    Reason.NO_ITEMS: "items is null or empty: a session shows 1 to 1000 items",
    Reason.TOO_MANY_ITEMS: "more than 1000 items: a session shows 1 to 1000 items",
    Reason.EMPTY_ITEM: "an item is null or empty",
    Reason.REPEATED_ITEM: "an item stands twice in the list",
    Reason.CLICKS_LENGTH: "clicks is null or not as long as items",
    Reason.NULL_CLICK: "a click is null: each is true or false",
    Reason.BAD_STEP: "step is negative: steps count from 1, or are null",
}
_CODES = tuple(DETAILS)


class Validated(NamedTuple):
    """Every row read, either in `good` (by `GOOD_SCHEMA`) or in `rejects`."""

    good: pa.RecordBatch
    rejects: pa.RecordBatch


class _Flags:
    """The first reason found against each row, as 1 + its place in `_CODES`."""

    def __init__(self, rows: int) -> None:
        self.code: npt.NDArray[np.uint8] = np.zeros(rows, dtype=np.uint8)

    def raise_where(self, bad: npt.NDArray[Any], reason: Reason) -> None:
        """Hold `reason` against the rows `bad` (a mask or row numbers) that have none yet."""
        rows = np.flatnonzero(bad) if bad.dtype == np.bool_ else bad
        rows = rows[self.code[rows] == 0]
        self.code[rows] = _CODES.index(reason) + 1


def validate(
    batch: pa.RecordBatch, source: str, positions: int | npt.NDArray[np.int64] = 1
) -> Validated:
    """Split raw rows into accepted sessions and rejects; the rules are design.md's.

    `positions` is the place of the first row in its file (rows count from 1), or of every row.
    """
    if isinstance(positions, (int, np.integer)):
        positions = np.arange(positions, positions + batch.num_rows, dtype=np.int64)
    names = batch.schema.names
    wrong = [name for name in REQUIRED if name not in names]
    wrong += [name for name in COLUMNS if names.count(name) > 1]
    if wrong:
        detail = f"need one column {', '.join(wrong)}; the columns are {', '.join(names)}"
        return _reject_all(batch, source, positions, Reason.WRONG_SCHEMA, detail)
    try:
        return _split(batch, source, positions)
    except columns.WrongTypeError as error:
        return _reject_all(batch, source, positions, Reason.WRONG_TYPE, str(error))


def _split(batch: pa.RecordBatch, source: str, positions: npt.NDArray[np.int64]) -> Validated:
    rows = batch.num_rows
    flags = _Flags(rows)

    query = columns.as_codes(columns.as_text(batch.column("query"), "query"))
    query_codes = query.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    session_id = columns.as_plain(columns.as_text(batch.column("session_id"), "session_id"))
    items = columns.as_lists(batch.column("items"), "items")
    words = columns.as_codes(columns.as_text(items.values, "items"))
    codes = words.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    clicks = columns.as_lists(batch.column("clicks"), "clicks")
    click_flags = columns.as_clicks(clicks.values)
    times = columns.as_micros(batch.column("event_time"))
    if "step" in batch.schema.names:
        steps, negative_step = columns.as_steps(batch.column("step"))
    else:
        steps, negative_step = np.full(rows, -1, np.int64), np.zeros(rows, np.bool_)

    item_rows = _RowOf(items.lengths)
    click_rows = _RowOf(clicks.lengths)
    _flag_text(flags, query.dictionary, query_codes, session_id, words.dictionary, codes, item_rows)
    flags.raise_where(click_rows.of(click_flags == 3), Reason.WRONG_TYPE)
    flags.raise_where(_empty_or_null(query_codes, query.dictionary), Reason.MISSING_QUERY)
    id_lengths = pc.binary_length(session_id).fill_null(0).to_numpy(zero_copy_only=False)
    flags.raise_where(id_lengths == 0, Reason.MISSING_SESSION_ID)
    flags.raise_where(times == columns.NO_TIME, Reason.BAD_EVENT_TIME)
    flags.raise_where(items.lengths == 0, Reason.NO_ITEMS)
    flags.raise_where(items.lengths > MAX_ITEMS, Reason.TOO_MANY_ITEMS)
    flags.raise_where(item_rows.of(_empty_or_null(codes, words.dictionary)), Reason.EMPTY_ITEM)
    lengths_differ = (clicks.lengths != items.lengths) | clicks.is_null
    flags.raise_where(lengths_differ, Reason.CLICKS_LENGTH)
    flags.raise_where(click_rows.of(click_flags == 2), Reason.NULL_CLICK)
    flags.raise_where(negative_step, Reason.BAD_STEP)
    flags.raise_where(_repeating(codes, items.lengths, flags.code == 0), Reason.REPEATED_ITEM)

    kept = flags.code == 0
    good = pa.record_batch(
        [
            query,
            session_id,
            pa.array(times),
            _lists(items.lengths, words),
            _lists(clicks.lengths, pa.array(click_flags)),
            pa.array(steps),
            pa.array(positions),
        ],
        schema=GOOD_SCHEMA,
    )
    rejects = RejectRows(source)
    if not kept.all():
        good = good.filter(pa.array(kept))
        bad = np.flatnonzero(~kept)
        for row, payload in zip(bad.tolist(), payloads(batch, bad), strict=True):
            reason = _CODES[flags.code[row] - 1]
            rejects.add(int(positions[row]), reason, DETAILS[reason], payload)
    return Validated(good, rejects.to_batch())


class _RowOf:
    """From elements of a flat list column to the rows that hold them."""

    def __init__(self, lengths: npt.NDArray[np.int64]) -> None:
        self._ends = np.cumsum(lengths)

    def of(self, bad: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The rows with a bad element."""
        found = np.flatnonzero(bad)
        return np.unique(np.searchsorted(self._ends, found, side="right"))


def _empty_or_null(codes: npt.NDArray[np.int32], words: pa.StringArray) -> npt.NDArray[np.bool_]:
    empty = np.flatnonzero(pc.binary_length(words).to_numpy(zero_copy_only=False) == 0)
    bad: npt.NDArray[np.bool_] = codes < 0
    for code in empty:
        bad |= codes == code
    return bad


def _flag_text(
    flags: _Flags,
    queries: pa.StringArray,
    query_codes: npt.NDArray[np.int32],
    session_ids: pa.StringArray,
    words: pa.StringArray,
    codes: npt.NDArray[np.int32],
    item_rows: _RowOf,
) -> None:
    bad = columns.not_utf8(queries)
    if bad is not None:
        flags.raise_where(bad[query_codes] & (query_codes >= 0), Reason.WRONG_TYPE)
    bad = columns.not_utf8(session_ids)
    if bad is not None:
        flags.raise_where(bad, Reason.WRONG_TYPE)
    bad = columns.not_utf8(words)
    if bad is not None:
        flags.raise_where(item_rows.of(bad[codes] & (codes >= 0)), Reason.WRONG_TYPE)


def _repeating(
    codes: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64], usable: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    rows = np.flatnonzero(usable)
    if len(rows) == 0:
        return rows
    if len(rows) < len(usable):
        codes, lengths = codes[np.repeat(usable, lengths)], lengths[rows]
    return rows[rows_with_repeats(codes, lengths)]


def _lists(lengths: npt.NDArray[np.int64], values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets_of(lengths).astype(np.int32)), values)


def _reject_all(
    batch: pa.RecordBatch,
    source: str,
    positions: npt.NDArray[np.int64],
    reason: Reason,
    detail: str,
) -> Validated:
    rejects = RejectRows(source)
    for position, payload in zip(
        positions.tolist(), payloads(batch, np.arange(batch.num_rows)), strict=True
    ):
        rejects.add(position, reason, detail, payload)
    return Validated(pa.RecordBatch.from_pylist([], schema=GOOD_SCHEMA), rejects.to_batch())
