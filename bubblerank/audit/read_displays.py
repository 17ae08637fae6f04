"""From Parquet files of displays to blocks of one learner each."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import schemas
from bubblerank.audit.blocks import RawBlock
from bubblerank.audit.finding import Key
from bubblerank.config import MAX_ITEMS
from bubblerank.errors import UsageError

BATCH_ROWS = 1 << 16
KEY_COLUMNS = ("ranker", "query", "run", "step")
LIST_COLUMNS = ("base", "displayed", "clicks")
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError)

Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]


def read_displays(
    file: Any, path: str, groups: Sequence[int], columns: Sequence[str] = LIST_COLUMNS
) -> Iterator[tuple[Key, RawBlock]]:
    """The blocks of some row groups; only the wanted ones of the list columns are read."""
    try:
        opened = pq.ParquetFile(file, read_dictionary=_text_leaves(file))
    except _UNREADABLE as error:
        raise UsageError(f"{path} is no Parquet file that can be read ({error})") from error
    check_columns(opened.schema_arrow, path)
    wanted = [*KEY_COLUMNS, *columns]
    for group in groups:
        try:
            batches = opened.iter_batches(
                BATCH_ROWS, row_groups=[group], columns=wanted, use_threads=False
            )
            for batch in batches:
                yield from _blocks({name: _column(batch, name, path) for name in wanted})
        except UsageError:
            raise
        except _UNREADABLE as error:
            raise UsageError(f"{path}, row group {group}, cannot be read ({error})") from error


def check_columns(found: pa.Schema, path: str) -> None:
    """Refuse a file of another schema, telling everything that is wrong with it."""
    expected = schemas.arrow_schema("display")
    wrong = []
    for name in (*KEY_COLUMNS, *LIST_COLUMNS):
        if name not in found.names:
            wrong.append(f"no column {name}")
        elif not _alike(found.field(name).type, expected.field(name).type):
            wrong.append(f"{name} is {found.field(name).type}, not {expected.field(name).type}")
    if wrong:
        raise UsageError(
            f"{path} has another schema than display: {'; '.join(wrong)}: "
            "see `bubblerank schema show display`"
        )


def _alike(found: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        return _alike(found.value_type, expected)
    if pa.types.is_list(expected):
        is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
        return is_list and _alike(found.value_type, expected.value_type)
    if pa.types.is_string(expected):
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found))
    if pa.types.is_integer(expected):
        return bool(pa.types.is_integer(found))
    return bool(found.equals(expected))


def _text_leaves(file: Any) -> list[str]:
    schema = pq.ParquetFile(file).schema
    leaves = [schema.column(number) for number in range(len(schema))]
    return [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]


def _column(batch: pa.RecordBatch, name: str, path: str) -> Any:
    """A column as numbers: (lengths, flat) of a list, (codes, dictionary) of text."""
    column = batch.column(batch.schema.get_field_index(name))
    _refuse_nulls(column, name, path)
    if name in ("run", "step"):
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if name in ("ranker", "query"):
        return _coded(column)
    offsets = column.offsets.to_numpy().astype(np.int64)
    longest = int(np.diff(offsets).max(initial=0))
    if longest > MAX_ITEMS:
        raise UsageError(
            f"{path}: column {name} holds a list of {longest} items: at most {MAX_ITEMS}"
        )
    flat = column.flatten()
    _refuse_nulls(flat, name, path)
    if name == "clicks":
        return offsets - offsets[0], flat.to_numpy(zero_copy_only=False).view(np.uint8), ()
    codes, names = _coded(flat)
    return offsets - offsets[0], codes, names


def _coded(column: pa.Array) -> tuple[Codes, pa.Array]:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.indices.cast(pa.int32()).to_numpy(), column.dictionary


def _refuse_nulls(column: pa.Array, name: str, path: str) -> None:
    if column.null_count:
        raise UsageError(
            f"{path}: column {name} holds {column.null_count} nulls: displays have none; "
            "write them again"
        )


def _blocks(columns: dict[str, Any]) -> Iterator[tuple[Key, RawBlock]]:
    """Rows of a batch by learner and by the lengths of their lists."""
    (ranker, rankers), (query, queries) = columns["ranker"], columns["query"]
    run, step = columns["run"], columns["step"]
    if len(step) == 0:
        return
    parts = [ranker, query, run]
    parts += [np.diff(columns[name][0]) for name in LIST_COLUMNS if name in columns]
    order, bounds = _groups(parts, step)
    for first, last in pairwise(bounds):
        rows = order[first:last]
        at = rows[0]
        key = Key(rankers[int(ranker[at])].as_py(), queries[int(query[at])].as_py(), int(run[at]))
        yield key, _block(columns, rows)


def _groups(parts: Sequence[npt.NDArray[Any]], step: Ints) -> tuple[Ints, list[int]]:
    """Rows in the order of the parts and then of the step, and where each group begins."""
    varying = [part for part in parts if (part != part[0]).any()]
    order = np.arange(len(step))
    if varying or (np.diff(step) < 0).any():
        order = np.lexsort([step, *reversed(varying)])
    changes = np.zeros(len(step) - 1, dtype=np.bool_)
    for part in varying:
        changes |= np.diff(part[order]) != 0
    return order, [0, *(np.flatnonzero(changes) + 1).tolist(), len(step)]


def _block(columns: dict[str, Any], rows: Ints) -> RawBlock:
    lists = {
        name: _matrix(columns[name], rows)
        if name in columns
        else np.zeros((len(rows), 0), dtype=np.int32)
        for name in LIST_COLUMNS
    }
    items: dict[str, int] = {}
    base_id, bases = _distinct(lists["base"], columns.get("base"), items)
    shown_id, shown = _distinct(lists["displayed"], columns.get("displayed"), items)
    return RawBlock(
        items=tuple(items),
        bases=bases,
        shown=shown,
        step=columns["step"][rows],
        base_id=base_id,
        shown_id=shown_id,
        clicks=lists["clicks"].astype(np.uint8, copy=False),
    )


def _matrix(column: tuple[Ints, npt.NDArray[Any], Any], rows: Ints) -> npt.NDArray[Any]:
    """The lists of some rows, which are all of one length, as a matrix."""
    offsets, flat, _ = column
    width = int(offsets[rows[0] + 1] - offsets[rows[0]])
    first = int(offsets[rows[0]])
    if rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return flat[first : first + width * len(rows)].reshape(len(rows), width)
    found: npt.NDArray[Any] = flat[offsets[rows][:, None] + np.arange(width)]
    return found


def _distinct(
    table: Codes, column: tuple[Ints, Codes, pa.Array] | None, items: dict[str, int]
) -> tuple[Codes, Codes]:
    """The number of each row's list, and the distinct lists by the block's own items."""
    from bubblerank.kernels.audit import number_lists

    numbers, firsts = number_lists(np.ascontiguousarray(table))
    distinct = table[firsts]
    if column is None or distinct.size == 0:
        return numbers, distinct
    used = np.unique(distinct)
    names = column[2].take(pa.array(used)).to_pylist()
    codes = np.array([items.setdefault(name, len(items)) for name in names], dtype=np.int32)
    return numbers, codes[np.searchsorted(used, distinct)]
