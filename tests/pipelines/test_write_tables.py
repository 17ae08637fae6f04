import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.coders import BytesCoder
from apache_beam.io.localfilesystem import LocalFileSystem
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import BagStateSpec, TimerSpec, on_timer

import schemas
from bubblerank.errors import RunFailed
from bubblerank.run_folder import RunFolder
from pipelines import table_sink
from pipelines.engine import choose_engine, run_pipeline
from pipelines.write_tables import WriteTables

DISPLAY = schemas.arrow_schema("display")


def rows_of(query, steps):
    return [
        {
            "ranker": "bubblerank",
            "query": query,
            "run": 0,
            "step": step,
            "session_id": None if step % 3 else f"s{step}",
            "event_time": None,
            "base": ["a", "b", "ü"],
            "displayed": ["b", "a", "ü"],
            "clicks": [True, False, step % 2 == 0],
        }
        for step in steps
    ]


def block_of(rows, schema=DISPLAY, batches=1):
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as writer:
        for i in range(batches):
            part = rows[i * len(rows) // batches : (i + 1) * len(rows) // batches]
            writer.write_batch(pa.RecordBatch.from_pylist(part, schema=schema))
    return out.getvalue().to_pybytes()


def encoded(index=None):
    text = pa.dictionary(index or pa.int32(), pa.string())
    swap = {"ranker": text, "query": text}
    lists = {"base", "displayed"}
    return pa.schema(
        f.with_type(
            pa.list_(pa.field("item", text)) if f.name in lists else swap.get(f.name, f.type)
        )
        for f in DISPLAY
    )


def as_multiset(rows):
    return Counter(repr(sorted(row.items())) for row in rows)


def read_rows(folder):
    return [row for f in sorted(Path(folder).glob("*")) for row in pq.read_table(f).to_pylist()]


def write(tmp_path, source, flags=(), every_s=None, kind="display"):
    def build(p):
        p | source | WriteTables(str(tmp_path / "displays"), kind, every_s)

    return run_pipeline(build, choose_engine(flags)[0])


@pytest.mark.parametrize("flags", [[], ["--direct_num_workers=2"]])
def test_every_row_is_readable_and_counted_before_and_after(tmp_path, flags):
    blocks = [rows_of(f"q{i}", range(i)) for i in range(40)]
    books = write(tmp_path, beam.Create([block_of(rows, batches=2) for rows in blocks]), flags)
    rows = [row for block in blocks for row in block]
    assert as_multiset(read_rows(tmp_path / "displays")) == as_multiset(rows)
    assert books["rows_display"] == books["written_rows_display"] == len(rows)
    assert books["written_files_display"] == len(list((tmp_path / "displays").iterdir()))


def test_no_rows_make_no_file_and_no_failure(tmp_path):
    assert write(tmp_path, beam.Create([])) == {}
    write(tmp_path, beam.Create([block_of([])]))
    assert not (tmp_path / "displays").exists()


@pytest.mark.parametrize("index", [pa.int8(), pa.int32()])
def test_dictionary_columns_are_read_back_as_the_plain_schema(tmp_path, index):
    schema = encoded(index)
    items = [rows_of(f"q{i}", range(5)) for i in range(300)]
    mixed = [block_of(rows, schema if i % 3 else DISPLAY) for i, rows in enumerate(items)]
    write(tmp_path, beam.Create(mixed))
    for path in (tmp_path / "displays").iterdir():
        assert pq.read_schema(path).equals(DISPLAY, check_metadata=True)
    assert as_multiset(read_rows(tmp_path / "displays")) == as_multiset(sum(items, []))


@pytest.mark.parametrize("kind", ["display", "statistic", "metric", "reject", "finding"])
@pytest.mark.parametrize("schema_of", [schemas.arrow_schema, schemas.encoded_arrow_schema])
def test_every_kind_is_read_back_by_its_schema(tmp_path, kind, schema_of):
    schema = schemas.arrow_schema(kind)
    row = {f.name: _value(f.type) for f in schema}
    write(tmp_path, beam.Create([block_of([row], schema_of(kind))]), kind=kind)
    (path,) = (tmp_path / "displays").iterdir()
    assert pq.read_schema(path).equals(schema, check_metadata=True)
    assert pq.read_table(path).to_pylist() == [row]


def _value(type_):
    if pa.types.is_list(type_):
        return [_value(type_.value_type)]
    if pa.types.is_struct(type_):
        return {f.name: _value(f.type) for f in type_}
    if pa.types.is_timestamp(type_):
        return datetime(2026, 1, 2, tzinfo=UTC)
    return True if pa.types.is_boolean(type_) else "x" if pa.types.is_string(type_) else 1


def test_small_blocks_become_large_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(table_sink, "ROW_GROUP_ROWS", 1000)
    write(tmp_path, beam.Create([block_of(rows_of("q", range(30)))] * 100))
    (path,) = (tmp_path / "displays").iterdir()
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [
        1020,
        1020,
        960,
    ]


def test_a_block_with_other_columns_fails_the_run_with_their_names(tmp_path):
    block = block_of([{"query": "q"}], pa.schema([("query", pa.string())]))
    with pytest.raises(RunFailed, match=r"must have the columns .*'ranker'.* got \['query'\]"):
        write(tmp_path, beam.Create([block]))
    assert not list(tmp_path.glob("displays/*"))


@pytest.mark.parametrize("where", ["query", "base"])
def test_a_null_where_the_schema_has_none_fails_the_run(tmp_path, where):
    loose = pa.schema(
        pa.field(f.name, pa.list_(pa.string()) if f.name == "base" else f.type) for f in DISPLAY
    )
    row = rows_of("q", [1])[0] | {where: None if where == "query" else ["a", None]}
    with pytest.raises(RunFailed, match="null"):
        write(tmp_path, beam.Create([block_of([row], loose)]))


def stream(*events):
    test = TestStream(coder=BytesCoder())
    for event in events:
        test = event(test)
    return test.advance_watermark_to_infinity()


def add(time_s, *blocks):
    elements = [beam.window.TimestampedValue(block, time_s) for block in blocks]
    return lambda test: test.add_elements(elements)


def watermark(time_s):
    return lambda test: test.advance_watermark_to(time_s)


def test_a_stream_of_many_windows_loses_no_row_and_overwrites_no_pane(tmp_path):
    blocks = {(w, i): rows_of(f"q{w}-{i}", range(3)) for w in range(30) for i in range(3)}
    late = {(w, i): rows_of(f"late{w}-{i}", range(2)) for w in (0, 7) for i in range(3)}
    events = []
    for w in range(30):
        events += [add(10 * w + 2 * i, block_of(blocks[w, i])) for i in range(3)]
        if w % 4 == 3:
            events.append(watermark(10 * w + 5))
    events += [watermark(1000)]
    events += [add(10 * w + i, block_of(rows)) for (w, i), rows in late.items()]
    books = write(tmp_path, stream(*events), ["--streaming"], every_s=10)
    rows = sum([*blocks.values(), *late.values()], [])
    assert as_multiset(read_rows(tmp_path / "displays")) == as_multiset(rows)
    assert books["rows_display"] == books["written_rows_display"] == len(rows)
    assert books["written_files_display"] == len(list((tmp_path / "displays").iterdir())) == 36


def test_a_bundle_of_more_windows_than_writers_loses_no_row(tmp_path):
    blocks = [rows_of(f"q{w}", range(2)) for w in range(60)]
    elements = [beam.window.TimestampedValue(block_of(b), 10 * w) for w, b in enumerate(blocks)]
    source = TestStream(coder=BytesCoder()).add_elements(elements).advance_watermark_to_infinity()
    write(tmp_path, source, ["--streaming"], every_s=10)
    assert as_multiset(read_rows(tmp_path / "displays")) == as_multiset(sum(blocks, []))


def test_windows_of_bounded_input_lose_no_row_either(tmp_path):
    blocks = [rows_of(f"q{w}", range(2)) for w in range(60)]
    for every_s, name in ((None, "a"), (10, "b")):
        source = (
            beam.Create(list(enumerate(map(block_of, blocks))))
            | beam.MapTuple(
                lambda w, block: beam.window.TimestampedValue(block, 10 * w)
            ).with_output_types(bytes)
            | beam.WindowInto(beam.window.FixedWindows(20))
        )
        write(tmp_path / name, source, every_s=every_s)
        assert as_multiset(read_rows(tmp_path / name / "displays")) == as_multiset(sum(blocks, []))


def test_a_window_appears_when_the_watermark_passes_it_and_not_before(tmp_path):
    log = tmp_path / "seen"

    def look(block):
        with log.open("a") as file:
            file.write(f"{len(list(tmp_path.glob('displays/*')))} ")
        return block

    source = stream(
        add(1, block_of(rows_of("a", [1]))),
        add(11, block_of(rows_of("b", [1]))),
        watermark(10),
        add(12, block_of(rows_of("c", [1]))),
        watermark(20),
        add(21, block_of(rows_of("d", [1]))),
    ) | beam.Map(look).with_output_types(bytes)
    write(tmp_path, source, ["--streaming"], every_s=10)
    assert log.read_text().split() == ["0", "0", "1", "2"]
    assert len(list(tmp_path.glob("displays/*"))) == 3


class _EmitAtWatermark(beam.DoFn):
    BAG = BagStateSpec("bag", BytesCoder())
    TIMER = TimerSpec("due", TimeDomain.WATERMARK)

    def process(
        self,
        element,
        time=beam.DoFn.TimestampParam,
        bag=beam.DoFn.StateParam(BAG),
        due=beam.DoFn.TimerParam(TIMER),
    ):
        bag.add(element[1])
        due.set(time + 7)

    @on_timer(TIMER)
    def fire(self, bag=beam.DoFn.StateParam(BAG)):
        yield from list(bag.read())
        bag.clear()


def test_what_timers_emit_at_the_watermark_is_written_in_full(tmp_path):
    blocks = {(w, k): rows_of(f"q{k}", [w]) for w in range(12) for k in range(4)}
    events = []
    for w in range(12):
        events += [add(10 * w + k, block_of(blocks[w, k])) for k in range(4)]
        events.append(watermark(10 * w + 3))
    source = (
        stream(*events)
        | beam.Map(lambda b: (str(len(b) % 3), b)).with_output_types(tuple[str, bytes])
        | beam.ParDo(_EmitAtWatermark()).with_output_types(bytes)
    )
    write(tmp_path, source, ["--streaming"], every_s=10)
    assert as_multiset(read_rows(tmp_path / "displays")) == as_multiset(sum(blocks.values(), []))


def test_a_bundle_that_explodes_leaves_nothing_under_a_final_name(tmp_path):
    def explode(i):
        if i == 150:
            raise ValueError("boom")
        return block_of(rows_of("q", [i]))

    with pytest.raises(RunFailed, match="ValueError: boom"):
        write(tmp_path, beam.Create(range(200)) | beam.Map(explode).with_output_types(bytes))
    assert not list(tmp_path.glob("displays/*"))


def test_a_bundle_that_is_retried_writes_its_rows_once(tmp_path):
    blocks = [block_of(rows_of(f"q{i}", range(3))) for i in range(50)]
    books = write(tmp_path, beam.Create(blocks), ["--direct_runner_bundle_repeat=2"])
    assert books["written_rows_display"] == len(read_rows(tmp_path / "displays")) == 150


def _no_rename(self, sources, targets):
    from apache_beam.io.filesystem import BeamIOError

    raise BeamIOError("Invalid cross-device link", {})


def test_a_temporary_folder_on_another_device_is_detected(tmp_path, monkeypatch):
    monkeypatch.setattr(LocalFileSystem, "rename", _no_rename)
    with pytest.raises(RunFailed, match=r"displays/display-\w+.parquet was written but cannot be"):
        write(tmp_path, beam.Create([block_of(rows_of("q", [1]))]))


def test_a_rename_that_already_happened_is_no_failure(tmp_path, monkeypatch):
    rename = LocalFileSystem.rename

    def twice(self, sources, targets):
        rename(self, sources, targets)
        rename(self, sources, targets)

    monkeypatch.setattr(LocalFileSystem, "rename", twice)
    write(tmp_path, beam.Create([block_of(rows_of("q", range(9)))]))
    assert len(read_rows(tmp_path / "displays")) == 9


def test_a_file_cut_short_is_detected(tmp_path, monkeypatch):
    rename = LocalFileSystem.rename

    def cut(self, sources, targets):
        for source in sources:
            os.truncate(source, os.path.getsize(source) - 5)
        rename(self, sources, targets)

    monkeypatch.setattr(LocalFileSystem, "rename", cut)
    with pytest.raises(RunFailed, match="cannot be read back"):
        write(tmp_path, beam.Create([block_of(rows_of("q", [1]))]))


@pytest.mark.parametrize("every_s", [None, 10])
def test_a_sink_that_drops_rows_fails_the_run(tmp_path, monkeypatch, every_s):
    conform = table_sink._conform
    monkeypatch.setattr(table_sink, "_conform", lambda *a: conform(*a).slice(1))
    block = block_of(rows_of("q", range(9)))
    source, flags = (
        (stream(add(1, block)), ["--streaming"]) if every_s else (beam.Create([block]), [])
    )
    with pytest.raises(
        RunFailed, match=r"9 display rows were to be written and 8 are readable: .*again"
    ):
        write(tmp_path, source, flags, every_s)


def test_a_bad_kind_or_window_is_refused_when_the_pipeline_is_built(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'display'"):
        WriteTables(str(tmp_path), "displays")
    with pytest.raises(ValueError, match="every_s must be above 0 seconds, got 0"):
        WriteTables(str(tmp_path), "display", every_s=0)
    with pytest.raises(ValueError, match="window by window: give every_s"):
        write(tmp_path, stream(), ["--streaming"])


@pytest.mark.slow
def test_worker_processes_write_the_same_rows(tmp_path):
    blocks = [rows_of(f"q{i}", range(i)) for i in range(40)]
    flags = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    write(tmp_path, beam.Create([block_of(rows) for rows in blocks]), flags)
    assert as_multiset(read_rows(tmp_path / "displays")) == as_multiset(sum(blocks, []))


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_leaves_no_temporary_folder_behind(tmp_path, fails):
    folder = RunFolder.prepare(tmp_path / "run")

    def build(p):
        blocks = p | beam.Create([block_of(rows_of("q", range(9)))])
        blocks | WriteTables(str(folder.part("displays")), "display")
        if fails:
            blocks | beam.Map(lambda block: 1 // 0)

    with folder.filling():
        try:
            counters = run_pipeline(build, choose_engine()[0])
        except RunFailed:
            assert fails
        else:
            folder.write_manifest(
                command="replay",
                settings={},
                seed=0,
                runner="DirectRunner",
                engine="FnApiRunner",
                counters=counters,
                seconds=1.0,
            )
    left = {path.name for path in folder.path.iterdir()}
    assert left <= {"displays", "run.json"} and folder.is_complete == (not fails)


def test_a_write_that_fails_and_is_tried_again_writes_its_rows_once(tmp_path, monkeypatch):
    conform, failures = table_sink._conform, iter([OSError("disk"), OSError("disk")])

    def flaky(*arguments):
        for error in failures:
            raise error
        return conform(*arguments)

    monkeypatch.setattr(table_sink, "_conform", flaky)
    blocks = [rows_of(f"q{i}", range(3)) for i in range(4)]
    source = stream(*[add(i, block_of(rows)) for i, rows in enumerate(blocks)])
    books = write(tmp_path, source, ["--streaming"], every_s=10)
    assert next(failures, None) is None
    assert as_multiset(read_rows(tmp_path / "displays")) == as_multiset(sum(blocks, []))
    assert books["written_files_display"] == 1
