"""Where a replay takes each query's base list from: elements that start its stream."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP

from bubblerank.config import RankerConfig
from bubblerank.errors import UsageError, raise_all
from bubblerank.field_checks import distinct_items, non_empty_text
from bubblerank.record_files import read_records
from bubblerank.run_folder import RunFolder
from bubblerank.sessions.block import decode
from bubblerank.stream import frames
from bubblerank.stream.resume import start_from_statistic
from bubblerank.stream.start import Start, pack_strings, unpack_strings
from schemas import arrow_schema

MOST_FREQUENT, FIRST = "most-frequent", "first"
_RESUME_ROWS = 4096
_BATCH, _LISTS_AT_ONCE = b"STRS", 1024


def read_base_lists(path: str) -> dict[str, tuple[str, ...]]:
    """The lists of a file of records with ``query`` and ``items``; problem files are such.

    A query may stand there twice only with the same list.
    """
    lists: dict[str, tuple[str, ...]] = {}
    for place, record in read_records(path):
        try:
            if not isinstance(record, Mapping) or not {"query", "items"} <= record.keys():
                raise ValueError("a base list is a record with the fields query and items")
            non_empty_text("query", record["query"])
            items = distinct_items("items", record["items"])
        except ValueError as error:
            raise UsageError(f"{place}: {error}") from error
        query = record["query"]
        if lists.setdefault(query, items) != items:
            raise UsageError(f"{place}: query {query!r} has another base list before: keep one")
    return lists


class StartFromLists(beam.PTransform):
    """One start for each query of a mapping."""

    def __init__(self, lists: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        starts = [
            field
            for query, items in lists.items()
            for field in (query.encode("utf-8"), Start(tuple(items)).to_bytes())
        ]
        self._batches = [
            frames.pack(_BATCH, 1, starts[first : first + 2 * _LISTS_AT_ONCE])
            for first in range(0, len(starts), 2 * _LISTS_AT_ONCE)
        ]

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection:
        """Create them before all time; many at once, since an element of Create is dear."""
        return (
            pbegin
            | beam.Create(self._batches)
            | "OneByOne" >> beam.FlatMap(_before_all_time).with_output_types(tuple[str, bytes])
        )


class StartFromMostFrequent(beam.PTransform):
    """For each query of the blocks, the list that most of its sessions show.

    All accepted sessions count, duplicates too; of equally frequent lists, the smallest in
    the order of its items' bytes is taken.
    """

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        """Count lists within blocks, add up, take the most frequent."""
        return (
            blocks
            | "Unwindow" >> beam.WindowInto(beam.window.GlobalWindows())
            | "CountInBlocks"
            >> beam.FlatMap(_count_lists).with_output_types(tuple[tuple[str, bytes], int])
            | "Count" >> beam.CombinePerKey(sum)
            | "ByQuery"
            >> beam.MapTuple(lambda key, count: (key[0], (count, key[1]))).with_output_types(
                tuple[str, tuple[int, bytes]]
            )
            | "Best"
            >> beam.CombinePerKey(_most_frequent).with_output_types(tuple[str, tuple[int, bytes]])
            | "Start"
            >> beam.MapTuple(
                lambda query, best: (query, Start(unpack_strings(best[1])).to_bytes())
            ).with_output_types(tuple[str, bytes])
            | _BeforeAllTime()
        )


class StartFromStatistics(beam.PTransform):
    """One start for each row of an earlier run's statistics; the ranker takes the latest."""

    def __init__(self, paths: Sequence[str], config: RankerConfig) -> None:
        super().__init__()
        self._paths = list(paths)
        self._config = config

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection:
        """Read the files row by row."""
        return (
            pbegin
            | beam.Create(self._paths)
            | "ReadStatistics"
            >> beam.FlatMap(_read_starts, self._config).with_output_types(tuple[str, bytes])
            | _BeforeAllTime()
        )


def statistics_files(given: str) -> list[str]:
    """The Parquet files of ``--resume``: a run, its statistics folder, or one file."""
    path = Path(given)
    if (path / "run.json").is_file():
        found = RunFolder(path).files("statistics")
    elif path.is_dir():
        found = sorted(path.glob("*.parquet"))
    else:
        found = [path] if path.is_file() else []
    if not found:
        raise UsageError(
            f"--resume {given} names no statistics: give a run, its statistics folder or a file"
        )
    raise_all(complaint for file in found if (complaint := _no_statistics(file)))
    return [str(file) for file in found]


def _no_statistics(file: Path) -> str | None:
    """Why a file of ``--resume`` cannot be taken, if so."""
    try:
        columns = pq.read_schema(file).names
    except (OSError, pa.ArrowInvalid) as error:
        return f"--resume {file} cannot be read: {str(error).splitlines()[0]}"
    missing = [name for name in arrow_schema("statistic").names if name not in columns]
    if missing:
        return f"--resume {file} holds no statistics: it has no column {', '.join(missing)}"
    return None


def _before_all_time(batch: bytes) -> Iterator[TimestampedValue]:
    fields = iter(frames.unpack(_BATCH, 1, batch))
    for query, start in zip(fields, fields, strict=True):
        yield TimestampedValue((query.decode("utf-8"), start), MIN_TIMESTAMP)


class _BeforeAllTime(beam.PTransform):
    def expand(self, starts: beam.PCollection) -> beam.PCollection:
        return starts | "BeforeAllTime" >> beam.Map(
            lambda start: TimestampedValue(start, MIN_TIMESTAMP)
        ).with_output_types(tuple[str, bytes])


def _count_lists(element: tuple[str, bytes]) -> Iterator[tuple[tuple[str, bytes], int]]:
    query, data = element
    block = decode(data)
    first_rows = np.unique(block.list_id, return_index=True, return_counts=True)
    for _list, row, count in zip(*(column.tolist() for column in first_rows), strict=True):
        yield (query, pack_strings(block.list_of(row))), count


def _most_frequent(candidates: Iterable[tuple[int, bytes]]) -> tuple[int, bytes]:
    found = list(candidates)
    most = max(count for count, _ in found)
    ties = {data for count, data in found if count == most}
    # Strings compare by code point, which is the order of their UTF-8 bytes.
    return most, min(ties, key=unpack_strings) if len(ties) > 1 else ties.pop()


def _read_starts(path: str, config: RankerConfig) -> Iterator[tuple[str, bytes]]:
    for batch in pq.ParquetFile(path).iter_batches(_RESUME_ROWS):
        rows: list[dict[str, Any]] = batch.to_pylist()
        for row in rows:
            if row["ranker"] == "bubblerank" and row["run"] == 0:
                try:
                    yield row["query"], start_from_statistic(row, config).to_bytes()
                except ValueError as error:
                    raise UsageError(f"--resume {path}: {error}") from error
