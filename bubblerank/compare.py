"""Do two runs hold the same rows? Rows have no order: each part is compared as a multiset.

Every column is compared to the bit, with two exceptions for `rejects`: of `source` only the
file's name counts (the same log may lie elsewhere), and `detail`, a text for people, does not.
`run.json` and `report.html` are not rows and are left out.

The first pass adds up 128-bit row hashes into 65,536 buckets by the rows' keys; the second pass
reads again only rows of buckets that differ, about MAX_ROWS at most, so that memory does not grow
with the runs.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import schemas
from bubblerank.errors import UsageError
from bubblerank.row_hashes import Hashes, row_hashes
from bubblerank.run_folder import PARTS, RunFolder

BUCKETS = 65_536
MAX_ROWS = 100_000
BATCH_ROWS = 16_384

KEYS = {
    "displays": ("ranker", "query", "run", "step"),
    "statistics": ("ranker", "query", "run", "step"),
    "metrics": ("ranker", "click_model", "query", "run", "step"),
    "rejects": ("source", "position", "reason"),
    "findings": ("check", "ranker", "query", "run", "step"),
}
NOT_COMPARED = {"rejects": ("detail",)}


@dataclass(frozen=True)
class Difference:
    """Rows of one key that the runs do not share: `expected` in A, `actual` in B, None for none."""

    key: dict[str, Any]
    expected: dict[str, Any] | None
    actual: dict[str, Any] | None


@dataclass(frozen=True)
class PartComparison:
    """One part of both runs. Rows are None where a run does not have the part.

    `differing` counts the keys' rows that differ; `all_found` is False where there are more, in
    buckets that were not looked at. `differences` are the first of them.
    """

    part: str
    rows_a: int | None
    rows_b: int | None
    same: bool
    differences: list[Difference] = field(default_factory=list)
    differing: int = 0
    all_found: bool = True


def compare_runs(
    a: RunFolder, b: RunFolder, limit: int = 10, parts: Collection[str] = tuple(PARTS)
) -> list[PartComparison]:
    """Compare those of `parts` that either run has, with the first `limit` differences of each."""
    for run in (a, b):
        run.read_manifest()
    found = [part for part in PARTS if part in parts and (a.files(part) or b.files(part))]
    return [compare_part(a, b, part, limit) for part in found]


def compare_part(a: RunFolder, b: RunFolder, part: str, limit: int = 10) -> PartComparison:
    """Compare one part, sorted by its key."""
    sums_a, sums_b = _read_sums(a, part), _read_sums(b, part)
    rows_a = int(sums_a.rows.sum()) if a.files(part) else None
    rows_b = int(sums_b.rows.sum()) if b.files(part) else None
    differing = np.flatnonzero((sums_a.hashes != sums_b.hashes).any(axis=1))
    if rows_a == rows_b and not len(differing):
        return PartComparison(part, rows_a, rows_b, same=True)
    until = np.cumsum((sums_a.rows + sums_b.rows)[differing])
    looked_at = differing[: max(1, int(np.searchsorted(until, MAX_ROWS, side="right")))]
    in_a, in_b = _rows_in(a, part, looked_at), _rows_in(b, part, looked_at)
    count_a, count_b = Counter(in_a[0]), Counter(in_b[0])
    found = _pair(_take_only(in_a, count_a - count_b), _take_only(in_b, count_b - count_a), part)
    return PartComparison(
        part,
        rows_a,
        rows_b,
        same=False,
        differences=found[:limit],
        differing=len(found),
        all_found=len(looked_at) == len(differing),
    )


class _Sums:
    """Per bucket: the sum of the row hashes, lane by lane, and the number of rows."""

    def __init__(self) -> None:
        self.hashes: Hashes = np.zeros((BUCKETS, 2), dtype=np.uint64)
        self.rows: npt.NDArray[np.int64] = np.zeros(BUCKETS, dtype=np.int64)


def _compared(part: str) -> list[str]:
    skipped = NOT_COMPARED.get(part, ())
    return [name for name in schemas.arrow_schema(PARTS[part]).names if name not in skipped]


def _batches(run: RunFolder, part: str) -> Iterator[pa.RecordBatch]:
    schema = schemas.arrow_schema(PARTS[part])
    for path in run.files(part):
        try:
            file = pq.ParquetFile(path)
            if not file.schema_arrow.equals(schema):
                raise UsageError(
                    f"{path} has another schema than {PARTS[part]}: "
                    "compare runs that this version wrote"
                )
            for batch in file.iter_batches(BATCH_ROWS):
                yield _without_folders(batch) if part == "rejects" else batch
        except pa.ArrowInvalid as error:
            raise UsageError(f"{path} cannot be read ({error}): run it again") from error


def _without_folders(batch: pa.RecordBatch) -> pa.RecordBatch:
    at = batch.schema.get_field_index("source")
    names = pc.replace_substring_regex(batch.column(at), pattern=r"^.*/", replacement="")
    return batch.set_column(at, batch.schema.field(at), names)


def _buckets(batch: pa.RecordBatch, part: str) -> npt.NDArray[np.int64]:
    keys = row_hashes(batch, KEYS[part])
    return (keys[:, 0] % np.uint64(BUCKETS)).astype(np.int64)


def _read_sums(run: RunFolder, part: str) -> _Sums:
    total = _Sums()
    for batch in _batches(run, part):
        buckets = _buckets(batch, part)
        np.add.at(total.hashes, buckets, row_hashes(batch, _compared(part)))
        total.rows += np.bincount(buckets, minlength=BUCKETS)
    return total


def _rows_in(
    run: RunFolder, part: str, buckets: npt.NDArray[np.int64]
) -> tuple[list[bytes], pa.Table]:
    """The rows of some buckets with their hashes."""
    names = _compared(part)
    hashes: list[bytes] = []
    kept = [schemas.arrow_schema(PARTS[part]).empty_table().select(names)]
    for batch in _batches(run, part):
        chosen = np.flatnonzero(np.isin(_buckets(batch, part), buckets))
        if len(chosen):
            rows = batch.select(names).take(pa.array(chosen))
            hashes.extend(one.tobytes() for one in row_hashes(rows, names))
            kept.append(pa.Table.from_batches([rows]).cast(kept[0].schema))
    return hashes, pa.concat_tables(kept)


def _take_only(rows: tuple[list[bytes], pa.Table], surplus: Counter[bytes]) -> list[dict[str, Any]]:
    """As many rows of each hash as `surplus` says."""
    hashes, table = rows
    chosen = []
    for i, one in enumerate(hashes):
        if surplus[one] > 0:
            surplus[one] -= 1
            chosen.append(i)
    found: list[dict[str, Any]] = table.take(pa.array(chosen, pa.int64())).to_pylist()
    return found


def _pair(
    only_a: list[dict[str, Any]], only_b: list[dict[str, Any]], part: str
) -> list[Difference]:
    """Put the rows of a key beside each other, in the order of the keys."""
    sides: dict[tuple[Any, ...], tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
    for side, rows in enumerate((only_a, only_b)):
        for row in rows:
            key = tuple(row[name] for name in KEYS[part])
            sides.setdefault(key, ([], []))[side].append(row)
    found = []
    for key in sorted(sides, key=lambda key: [(value is not None, value) for value in key]):
        named = dict(zip(KEYS[part], key, strict=True))
        for expected, actual in zip_longest(*sides[key]):
            found.append(Difference(named, expected, actual))
    return found
