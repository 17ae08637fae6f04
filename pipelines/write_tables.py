"""Write Arrow blocks as Parquet files, whole or not at all, and prove that every row arrived."""

import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io import fileio
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import StandardOptions
from apache_beam.options.value_provider import StaticValueProvider
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from apache_beam.transforms.window import FixedWindows, GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

import schemas
from bubblerank.errors import RunFailed
from bubblerank.run_folder import TEMPORARY
from pipelines.join_rows import JoinRows
from pipelines.table_sink import TableSink, count_rows

BOOKS = "books"
_NEVER_TOO_LATE = Duration(micros=MAX_TIMESTAMP.micros - MIN_TIMESTAMP.micros)
"""A window stays open for longer than time lasts: also after the watermark's last step, when
some engines deliver what timers emit."""


_LATEST_ON_PRISM = Duration(seconds=290 * 365 * 86_400)
"""Prism counts nanoseconds in 64 bits: of anything longer it makes a lateness below 0."""


class WrittenFile(NamedTuple):
    """A file that was opened again under its final name, and the rows found in it."""

    path: str
    rows: int


class WriteTables(beam.PTransform):
    """Blocks (bytes, each an Arrow IPC stream of `kind`'s rows) into `folder`/*.parquet.

    Packed rows (`bubblerank.stream.packed_rows`) are blocks too: they are joined first.

    Bounded input (`every_s` None): each bundle writes one file of large row groups, without a
    shuffle. Unbounded input must give `every_s`: the blocks of each window of that much event
    time become one file when the watermark passes its end; blocks that come later still become
    further files of the window, so lateness loses nothing.

    Files are written below `folder`/../.writing and then renamed, so that nothing half-written
    ever has a final name. A name depends only on what is in the file's group (the bundle's token,
    or window and pane): a retried rename finds the file in place, and no pane overwrites another.

    WriteToFiles swallows errors of the rename; so each file is opened again, its schema and rows
    are checked, and at the end of the run the rows read back must equal the rows that came in,
    or the run fails. Counters of namespace `books`: `rows_<kind>` (came in), `written_rows_<kind>`
    and `written_files_<kind>` (read back). The output is a PCollection of WrittenFile.
    """

    def __init__(self, folder: str, kind: str, every_s: float | None = None) -> None:
        super().__init__()
        schemas.arrow_schema(kind)
        if every_s is not None and not every_s > 0:
            raise ValueError(
                f"every_s must be above 0 seconds, got {every_s}: "
                "leave it out to write everything at the end"
            )
        self._folder = str(folder).rstrip("/")
        self._kind = kind
        self._every_s = every_s

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        """Count, write, verify, compare."""
        kind = self._kind
        if self._every_s is None and not blocks.is_bounded:
            raise ValueError(
                f"the {kind} rows of a stream must be written window by window: give every_s"
            )
        if not blocks.windowing.is_default():
            blocks |= "Unwindow" >> beam.WindowInto(GlobalWindows())
        counted = (
            blocks
            | "JoinRows" >> beam.ParDo(JoinRows(together=self._every_s is None))
            | "CountRows"
            >> beam.ParDo(_CountRows(kind, one_group=self._every_s is not None)).with_outputs(
                _CountRows.ROWS, main="blocks"
            )
        )
        grouped = counted.blocks
        if self._every_s is not None:
            grouped |= "Window" >> beam.WindowInto(
                FixedWindows(self._every_s),
                trigger=AfterWatermark(late=AfterCount(1)),
                accumulation_mode=AccumulationMode.DISCARDING,
                allowed_lateness=_lateness(blocks.pipeline),
            )
        written = (
            grouped
            | "Write"
            >> fileio.WriteToFiles(
                path=self._folder,
                temp_directory=StaticValueProvider(str, _temporary_folder(self._folder)),
                destination=lambda record: record[0],
                sink=lambda destination: _GroupSink(kind),
                file_naming=_name_files(kind),
                shards=1,
                max_writers_per_bundle=0 if self._every_s is not None else 1,
            )
            | "Verify" >> beam.ParDo(_Verify(self._folder, kind))
        )
        arrived = (
            written
            | "UnwindowWritten" >> beam.WindowInto(GlobalWindows())
            | "RowsOut" >> beam.Map(lambda file: (0, file.rows))
        )
        expected = counted[_CountRows.ROWS] | "RowsIn" >> beam.Map(lambda rows: (rows, 0))
        _ = (
            (expected, arrived)
            | "Both" >> beam.Flatten()
            | "AtTheEnd"
            >> beam.WindowInto(
                GlobalWindows(),
                trigger=AfterWatermark(),
                accumulation_mode=AccumulationMode.DISCARDING,
            )
            | "Total" >> beam.CombineGlobally(_add_pairs).without_defaults()
            | "Compare" >> beam.Map(_fail_unless_equal, kind)
        )
        return written


class _GroupSink(TableSink):
    def write(self, record: tuple[str, bytes]) -> None:  # type: ignore[override]
        super().write(record[1])


@beam.typehints.with_input_types(bytes)
@beam.typehints.with_output_types(tuple[str, bytes])
class _CountRows(beam.DoFn):
    """(group, block) for each block with rows, and the bundle's number of rows once."""

    ROWS = "rows"

    def __init__(self, kind: str, one_group: bool) -> None:
        self._one_group = one_group
        self._counter = Metrics.counter(BOOKS, f"rows_{kind}")

    def start_bundle(self) -> None:
        self._rows = 0
        self._group = "all" if self._one_group else uuid.uuid4().hex

    def process(self, block: bytes) -> Iterator[tuple[str, bytes]]:
        rows = count_rows(block)
        if rows:
            self._rows += rows
            self._counter.inc(rows)
            yield self._group, block

    def finish_bundle(self) -> Iterator[Any]:
        if self._rows:
            yield beam.pvalue.TaggedOutput(
                self.ROWS, WindowedValue(self._rows, MIN_TIMESTAMP, [GlobalWindow()])
            )


class _Verify(beam.DoFn):
    def __init__(self, folder: str, kind: str) -> None:
        self._folder = folder
        self._kind = kind
        self._rows = Metrics.counter(BOOKS, f"written_rows_{kind}")
        self._files = Metrics.counter(BOOKS, f"written_files_{kind}")

    def process(self, result: Any) -> Iterator[WrittenFile]:
        path = FileSystems.join(self._folder, result.file_name)
        rows = _rows_of(path, self._kind)
        self._rows.inc(rows)
        self._files.inc()
        yield WrittenFile(path, rows)


def _rows_of(path: str, kind: str) -> int:
    try:
        with FileSystems.open(path, compression_type="uncompressed") as file:
            parquet = pq.ParquetFile(pa.PythonFile(file, mode="r"))
            rows, schema = parquet.metadata.num_rows, parquet.schema_arrow
    except (OSError, pa.ArrowInvalid) as error:
        raise RunFailed(
            f"{path} was written but cannot be read back ({error}): "
            "check the space, the rights and the device of the output folder, and run again"
        ) from error
    if not schema.equals(schemas.arrow_schema(kind)):
        raise RunFailed(f"{path} was written by another schema than {kind}: {schema}")
    return int(rows)


def _name_files(kind: str) -> Any:
    def name(window: Any, pane: Any, shard: int, shards: int, compression: str, group: str) -> str:
        if window == GlobalWindow():
            return f"{kind}-{group}.parquet"
        edges = f"{_edge(window.start)}-{_edge(window.end)}"
        return f"{kind}-{edges}-{pane.index}.parquet"

    return name


def _lateness(pipeline: beam.Pipeline) -> Duration:
    runner = pipeline.options.view_as(StandardOptions).runner or ""
    return _LATEST_ON_PRISM if "prism" in runner.lower() else _NEVER_TOO_LATE


def _edge(time: Timestamp) -> str:
    """A window's edge in a file's name; the end of time is beyond all calendars."""
    try:
        return str(time.to_utc_datetime().strftime("%Y%m%dT%H%M%S.%fZ"))
    except OverflowError:
        return f"{time.micros}us"


def _temporary_folder(folder: str) -> str:
    parent, name = FileSystems.split(folder)
    return str(FileSystems.join(parent, TEMPORARY, f"{name}-{uuid.uuid4().hex}"))


def _add_pairs(pairs: Any) -> tuple[int, int]:
    first = second = 0
    for one, other in pairs:
        first += one
        second += other
    return first, second


def _fail_unless_equal(rows: tuple[int, int], kind: str) -> None:
    expected, arrived = rows
    if expected != arrived:
        raise RunFailed(
            f"{expected} {kind} rows were to be written and {arrived} are readable: "
            "the run is void; keep its log and run it again"
        )
