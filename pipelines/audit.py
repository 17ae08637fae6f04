"""The pipeline of `bubblerank audit`: displays in, each learner's history checked, findings out."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

import schemas
from bubblerank.audit.audit_history import audit_history
from bubblerank.audit.blocks import TAG as DISPLAYS_TAG
from bubblerank.audit.finding import Finding, Key
from bubblerank.audit.history import History
from bubblerank.audit.read_displays import LIST_COLUMNS, check_columns, read_displays
from bubblerank.audit.settings import AuditSettings
from bubblerank.audit.totals import FIRST, Totals
from bubblerank.errors import UsageError
from bubblerank.problems import Problem
from bubblerank.stream import frames
from bubblerank.stream.tables import to_ipc
from pipelines import pulse
from pipelines.write_tables import WriteTables

_STATISTIC, _START = b"STAT", b"FROM"
_VERSION = 1
_ROWS_PER_FINDINGS_BLOCK = 4096
_UNREADABLE = (pa.ArrowException, OSError, ValueError)


@dataclass(frozen=True)
class AuditPlan:
    """What is audited, by which settings, and where the results go.

    displays, statistics: Parquet files. resumed: the statistics that a resumed replay went on
    from. problems: by query. findings: the folder of findings, None to write none.
    told: findings about the whole, to be written with the others.
    totals: the file that the totals are written to.
    """

    settings: AuditSettings
    displays: tuple[str, ...]
    totals: str
    statistics: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    problems: Mapping[str, Problem] = field(default_factory=dict)
    findings: str | None = None
    told: tuple[Finding, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The list columns that the checks look at."""
        if set(self.settings.checks) <= {"safety", "completeness", "books"} and self.problems:
            return ("displayed",)
        return LIST_COLUMNS


def build(pipeline: beam.Pipeline, plan: AuditPlan) -> None:
    """Add the whole audit to a pipeline."""
    groups = [part for path in plan.displays for part in split_file(path)]
    blocks = (
        pipeline
        | "NameRowGroups" >> beam.Create(groups).with_output_types(tuple[str, int])
        | "SpreadRowGroups" >> beam.Reshuffle()
        | "ReadDisplays"
        >> beam.ParDo(_ReadDisplays(plan.columns)).with_output_types(tuple[str, bytes])
    )
    rows = [blocks]
    for name, paths, tag in (
        ("Statistics", plan.statistics, _STATISTIC),
        ("Resumed", plan.resumed, _START),
    ):
        if paths:
            rows.append(
                pipeline
                | f"Name{name}" >> beam.Create(list(paths))
                | f"Read{name}"
                >> beam.FlatMap(_read_statistics, tag).with_output_types(tuple[str, bytes])
            )
    audited = (
        rows
        | "Together" >> beam.Flatten()
        | "ByLearner" >> beam.GroupByKey()
        | "Audit"
        >> beam.ParDo(_Audit(plan.settings, plan.problems)).with_outputs(
            _Audit.FINDINGS, main="sums"
        )
    )
    if plan.findings is not None:
        told = [_findings_block(plan.told)] if plan.told else []
        whole = pipeline | "Told" >> beam.Create(told).with_output_types(bytes)
        _ = (
            (audited[_Audit.FINDINGS], whole)
            | "AllFindings" >> beam.Flatten()
            | "WriteFindings" >> WriteTables(plan.findings, "finding")
        )
    _ = (
        audited.sums
        | "AddUp" >> beam.CombineGlobally(_AddUp())
        | "WriteTotals" >> beam.Map(_write_totals, plan)
    )


def split_file(path: str) -> list[tuple[str, int]]:
    """(path, row group) of everything in a file of displays; UsageError if it is none."""
    try:
        with _open(path) as file:
            opened = pq.ParquetFile(file)
            groups, schema = opened.metadata.num_row_groups, opened.schema_arrow
    except _UNREADABLE as error:
        raise UsageError(
            f"{path} is no Parquet file that can be read ({error}): name files of displays"
        ) from error
    check_columns(schema, path)
    return [(path, group) for group in range(groups)]


def _write_totals(totals: Totals, plan: AuditPlan) -> None:
    """The verdicts as JSON, for the command that waits for them."""
    record = {
        "checks": totals.verdicts(plan.settings.checks, FIRST),
        "rankers": totals.exposures(FIRST),
    }
    with FileSystems.create(plan.totals) as file:
        file.write(json.dumps(record).encode("utf-8", "surrogatepass"))


def _open(path: str) -> Any:
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def _text_of(key: Key) -> str:
    return json.dumps(key)


class _ReadDisplays(beam.DoFn):
    """From a row group to (learner, block)."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)

    def process(self, element: tuple[str, int]) -> Iterator[tuple[str, bytes]]:
        path, group = element
        with _open(path) as file:
            for key, block in read_displays(file, path, [group], self._columns):
                pulse.add_read(len(block.step))
                yield _text_of(key), block.to_bytes()


def _read_statistics(path: str, tag: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with _open(path) as file:
            opened = pq.ParquetFile(file)
            if not opened.schema_arrow.equals(schemas.arrow_schema("statistic")):
                raise UsageError(f"{path} has another schema than statistic")
            for batch in opened.iter_batches(1024):
                for row in batch.to_pylist():
                    key = Key(row["ranker"], row["query"], row["run"])
                    content = json.dumps(row).encode("utf-8", "surrogatepass")
                    yield _text_of(key), frames.pack(tag, _VERSION, [content])
    except pa.ArrowException as error:
        raise UsageError(f"{path} cannot be read ({error})") from error


class _Audit(beam.DoFn):
    """All checks on one learner: totals of a bundle, and findings as Arrow streams."""

    FINDINGS = "findings"

    def __init__(self, settings: AuditSettings, problems: Mapping[str, Problem]) -> None:
        self._settings = settings
        self._problems = dict(problems)

    def start_bundle(self) -> None:
        self._totals = Totals()
        self._findings: list[Finding] = []

    def process(self, element: tuple[str, Iterable[bytes]]) -> Iterator[Any]:
        name, values = element
        key = Key(*json.loads(name))
        parts: dict[bytes, list[bytes]] = {DISPLAYS_TAG: [], _STATISTIC: [], _START: []}
        for value in values:
            parts[frames.tag_of(value)].append(value)
        starts = [_row(_START, value) for value in parts[_START]]
        if not parts[DISPLAYS_TAG] and not parts[_STATISTIC]:
            return
        history = History(
            key,
            parts[DISPLAYS_TAG],
            [_row(_STATISTIC, value) for value in parts[_STATISTIC]],
            max(starts, key=lambda row: int(row["step"]), default=None),
            self._problems.get(key.query),
            self._settings.positions,
            production=self._settings.simulated,
        )
        audit = audit_history(history, self._settings)
        pulse.add_ranked(history.displays)
        self._totals.add(audit)
        self._findings += audit.findings()
        while len(self._findings) >= _ROWS_PER_FINDINGS_BLOCK:
            yield self._block()

    def finish_bundle(self) -> Iterator[Any]:
        while self._findings:
            block = self._block()
            yield beam.pvalue.TaggedOutput(block.tag, _at_no_time(block.value))
        yield _at_no_time(self._totals)

    def _block(self) -> Any:
        rows = self._findings[:_ROWS_PER_FINDINGS_BLOCK]
        del self._findings[:_ROWS_PER_FINDINGS_BLOCK]
        return beam.pvalue.TaggedOutput(self.FINDINGS, _findings_block(rows))


def _at_no_time(value: Any) -> WindowedValue:
    return WindowedValue(value, MIN_TIMESTAMP, [GlobalWindow()])


def _findings_block(rows: Sequence[Finding]) -> bytes:
    records = [finding._asdict() for finding in rows]
    return to_ipc(pa.Table.from_pylist(records, schema=schemas.arrow_schema("finding")))


def _row(tag: bytes, data: bytes) -> Any:
    (content,) = frames.unpack(tag, _VERSION, data)
    return json.loads(content)


class _AddUp(beam.CombineFn):
    def create_accumulator(self) -> Totals:
        return Totals()

    def add_input(self, accumulator: Totals, element: Totals) -> Totals:
        accumulator.merge(element)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Totals]) -> Totals:
        merged = Totals()
        for one in accumulators:
            merged.merge(one)
        return merged

    def extract_output(self, accumulator: Totals) -> Totals:
        return accumulator
