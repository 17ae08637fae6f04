"""Columns of a raw log, whatever their Arrow type, in the few forms that validation needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

FIRST_SECOND = -62_135_596_800
"""0001-01-01T00:00:00Z, the first second that Python's datetime can show."""
LAST_SECOND = 253_402_300_799
"""9999-12-31T23:59:59Z, the last one."""
NO_TIME = np.iinfo(np.int64).min
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

_LIST_TYPES = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


class WrongTypeError(ValueError):
    """A column whose type cannot hold what its name promises."""


class Lists(NamedTuple):
    """A list column taken apart; a null list has length 0."""

    lengths: IntArray
    values: pa.Array
    is_null: BoolArray


def as_text(array: pa.Array, name: str) -> pa.Array:
    """`array` as string; a dictionary stays one, with int32 indices."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        values = as_text(array.dictionary, name)
        if values is array.dictionary and kind.index_type == pa.int32():
            return array
        return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), values)
    if pa.types.is_string(kind):
        return array
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return array.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return array.cast(pa.binary()).cast(pa.string(), safe=False)
    raise WrongTypeError(f"column {name} is {kind}, not string")


def as_codes(text: pa.Array) -> pa.DictionaryArray:
    """Dictionary-encode `text`; the dictionary holds each string once and no null."""
    if not pa.types.is_dictionary(text.type):
        return text.dictionary_encode()
    unique = text.dictionary.dictionary_encode()
    if len(unique.dictionary) == len(text.dictionary):
        return text
    return pa.DictionaryArray.from_arrays(unique.indices.take(text.indices), unique.dictionary)


def as_plain(text: pa.Array) -> pa.StringArray:
    """`text` without a dictionary."""
    return text.cast(pa.string()) if pa.types.is_dictionary(text.type) else text


def not_utf8(text: pa.StringArray) -> BoolArray | None:
    """Which strings are not UTF-8; None when all are, which is checked at memory speed."""
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return np.array([not _decodes(value) for value in text.cast(pa.binary())], dtype=np.bool_)
    return None


def _decodes(value: Any) -> bool:
    try:
        (value.as_py() or b"").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def as_lists(array: pa.Array, name: str) -> Lists:
    """Take a column of lists (of any Arrow list type) apart."""
    kind = array.type
    if pa.types.is_null(kind):
        empty = np.zeros(len(array), dtype=np.int64)
        return Lists(empty, pa.array([], pa.null()), np.ones(len(array), dtype=np.bool_))
    if not any(is_list(kind) for is_list in _LIST_TYPES):
        raise WrongTypeError(f"column {name} is {kind}, not a list")
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    return Lists(lengths.astype(np.int64), array.flatten(), is_null)


def as_micros(array: pa.Array) -> IntArray:
    """Event times as microseconds since 1970 UTC; `NO_TIME` where null or outside years 1 to 9999.

    Integers are microseconds, times without a zone are UTC, text is ISO 8601.
    """
    kind = array.type
    if pa.types.is_date(kind):
        array = array.cast(pa.timestamp("s"))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        array = _parse_times(array)
    elif not (pa.types.is_timestamp(kind) or pa.types.is_int64(kind) or pa.types.is_null(kind)):
        raise WrongTypeError(f"column event_time is {kind}, not timestamp or int64 microseconds")
    unit = array.type.unit if pa.types.is_timestamp(array.type) else "us"
    per_second = _PER_SECOND[unit]
    ticks = array.cast(pa.int64()).fill_null(NO_TIME).to_numpy(zero_copy_only=False)
    if per_second <= 1_000_000:
        outside = (ticks < FIRST_SECOND * per_second) | (ticks >= (LAST_SECOND + 1) * per_second)
        micros = np.where(outside, 0, ticks) * (1_000_000 // per_second)
    else:
        outside = ticks == NO_TIME
        micros = ticks // (per_second // 1_000_000)
    if outside.any():
        micros[outside] = NO_TIME
    return micros


def _parse_times(array: pa.Array) -> pa.Array:
    micros = pa.timestamp("us", "UTC")
    for kind in (micros, pa.timestamp("us")):
        try:
            return array.cast(kind)
        except pa.ArrowInvalid:
            continue
    return pa.array([parse_time(value) for value in array.to_pylist()], pa.int64())


def parse_time(text: str | None) -> int | None:
    """Microseconds of an ISO 8601 time, UTC unless it says otherwise; None when it is none."""
    try:
        moment = datetime.fromisoformat(text or "")
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def as_steps(array: pa.Array) -> tuple[IntArray, BoolArray]:
    """Steps as int64, -1 where null, and which of them are negative."""
    kind = array.type
    if not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise WrongTypeError(f"column step is {kind}, not int64")
    try:
        raw = array.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise WrongTypeError(f"column step does not fit into int64: {error}") from None
    negative = pc.less(raw, 0).fill_null(False).to_numpy(zero_copy_only=False)
    return raw.fill_null(-1).to_numpy(zero_copy_only=False), negative


def as_clicks(values: pa.Array, name: str = "clicks") -> npt.NDArray[np.uint8]:
    """Click flags as 0 or 1; 2 where null and 3 where the value is neither 0 nor 1."""
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), 2, dtype=np.uint8)
    if pa.types.is_boolean(kind):
        flags = values.cast(pa.uint8())
    elif pa.types.is_integer(kind):
        neither = pc.or_(pc.less(values, 0), pc.greater(values, 1))
        flags = pc.if_else(neither, pa.scalar(3, kind), values).cast(pa.uint8())
    else:
        raise WrongTypeError(f"column {name} holds {kind}, not boolean")
    filled: npt.NDArray[np.uint8] = flags.fill_null(2).to_numpy(zero_copy_only=False)
    return filled
