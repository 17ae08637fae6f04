import gzip
import json

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import Timestamp

from bubblerank.errors import UsageError
from bubblerank.sessions import avro, parquet
from bubblerank.sessions.block import decode
from bubblerank.sessions.rejects import Reason, from_ipc
from pipelines.engine import choose_engine, run_pipeline
from pipelines.read_sessions import ReadSessionFiles, ReadSessions, expand_patterns
from tests.sessions.test_readers import YANDEX, row, write_avro, write_jsonl, write_parquet

ROWS = [row(n) for n in range(100)]


class Stamped(beam.DoFn):
    """Each session of a block, after checking the block's key and timestamp."""

    def process(self, element, timestamp=beam.DoFn.TimestampParam):
        query, data = element
        block = decode(data)
        assert block.query == query
        assert timestamp == Timestamp(micros=int(block.event_time_us[0]))
        for i in range(len(block)):
            yield block.source_of(i), int(block.position[i]), block.to_payload(i)


def run(transform, sessions, rejects=(), source=None):
    """Run `transform` alone; compare its sessions and rejects; give back its books."""

    def build(pipeline):
        begin = pipeline if source is None else pipeline | beam.Create(source)
        found = begin | transform
        assert found.blocks.element_type == beam.typehints.Tuple[str, bytes]
        assert found.rejects.element_type is bytes
        shown = found.blocks | beam.ParDo(Stamped())
        assert_that(shown, equal_to(list(sessions)), label="sessions")
        reasons = found.rejects | beam.FlatMap(
            lambda data: [
                (r["source"], r["position"], r["reason"]) for r in from_ipc(data).to_pylist()
            ]
        )
        assert_that(reasons, equal_to(list(rejects)), label="rejects")

    options, _ = choose_engine()
    return run_pipeline(build, options)


def numbered(path, rows, first=1):
    return [(str(path), n, json.dumps(r, ensure_ascii=False)) for n, r in enumerate(rows, first)]


def test_files_of_every_format_are_read_in_one_go_and_the_books_balance(tmp_path):
    files = {
        "a.jsonl": write_jsonl(ROWS[:25]) + b"broken\n",
        "b.parquet": write_parquet(ROWS[25:50]),
        "c.avro": write_avro(ROWS[50:75])[:-3],
        "d.jsonl.gz": gzip.compress(write_jsonl(ROWS[75:])),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    sessions = [
        *numbered(tmp_path / "a.jsonl", ROWS[:25]),
        *numbered(tmp_path / "b.parquet", ROWS[25:50]),
        *numbered(tmp_path / "d.jsonl.gz", ROWS[75:]),
    ]
    rejects = [
        (str(tmp_path / "a.jsonl"), 26, Reason.NOT_PARSABLE),
        (str(tmp_path / "c.avro"), None, Reason.TRUNCATED_FILE),
    ]
    books = run(ReadSessions([f"{tmp_path}/*"]), sessions, rejects)
    assert books["read"] == 77
    assert books["rejected"] == 2


@pytest.mark.parametrize("block_sessions", [1, 7, 10_000])
def test_the_block_size_and_the_parts_change_no_session(tmp_path, monkeypatch, block_sessions):
    monkeypatch.setattr(parquet, "PART_ROWS", 30)
    monkeypatch.setattr(avro, "PART_BYTES", 300)
    (tmp_path / "b.parquet").write_bytes(write_parquet(ROWS, row_group_size=10))
    (tmp_path / "c.avro").write_bytes(write_avro(ROWS, sync_interval=200))
    sessions = numbered(tmp_path / "b.parquet", ROWS) + numbered(tmp_path / "c.avro", ROWS)
    transform = ReadSessions([f"{tmp_path}/*.*"], block_sessions=block_sessions)
    assert run(transform, sessions) == {"read": 200, "rejected": 0, "click_outside_list": 0}


def test_a_yandex_log_under_another_name_is_read_by_its_format(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(YANDEX.splitlines(keepends=True)[0] + "7\t1\tC\t5\n")
    urls = [str(100 + n) for n in range(10)]
    session = {
        "query": "55",
        "session_id": "7:1",
        "event_time": 1000,
        "items": urls,
        "clicks": [False] * 10,
        "step": None,
    }
    books = run(ReadSessions([str(path)], log_format="yandex"), numbered(path, [session]))
    assert books == {"read": 1, "rejected": 0, "click_outside_list": 1}


def test_columns_are_mapped(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(write_jsonl([{"q" if k == "query" else k: v for k, v in row(0).items()}]))
    run(ReadSessions([str(path)], column_map={"query": "q"}), numbered(path, [row(0)]))


def test_paths_found_while_running_are_read_alike(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(write_jsonl(ROWS))
    run(ReadSessionFiles(), numbered(path, ROWS), source=[str(path)])


def test_an_empty_log_is_no_error(tmp_path):
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.parquet").write_bytes(write_parquet([]))
    books = run(ReadSessions([f"{tmp_path}/*"]), [])
    assert books["read"] == 0


def test_what_cannot_be_read_is_told_before_the_pipeline_starts_all_at_once(tmp_path):
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.log").touch()
    patterns = [
        f"{tmp_path}/missing.avro",
        f"{tmp_path}/*.parquet",
        str(tmp_path),
        f"{tmp_path}/*",
    ]
    with pytest.raises(UsageError) as error:
        ReadSessions(patterns)
    for complaint in ("missing.avro matches no file", "*.parquet matches no file", "is a folder"):
        assert complaint in str(error.value)
    assert "b.log' does not show in its name" in str(error.value)
    with pytest.raises(UsageError, match="at least one file"):
        expand_patterns([])
    with pytest.raises(UsageError, match="at least 1 session, got 0"):
        ReadSessions([f"{tmp_path}/a.jsonl"], block_sessions=0)
    with pytest.raises(UsageError, match="did you mean 'items'"):
        ReadSessions([f"{tmp_path}/a.jsonl"], column_map={"itms": "x"})


def test_a_file_that_two_patterns_match_is_read_once(tmp_path):
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "folder.jsonl").mkdir()
    assert expand_patterns([f"{tmp_path}/*.jsonl", f"{tmp_path}/a.*"]) == [f"{tmp_path}/a.jsonl"]


def test_no_element_of_ours_is_pickled(tmp_path):
    (tmp_path / "a.jsonl").touch()
    pipeline = beam.Pipeline()
    _ = (pipeline | ReadSessions([f"{tmp_path}/a.jsonl"])).rejects
    components = pipeline.to_runner_api().components

    def urns(coder_id):
        coder = components.coders[coder_id]
        return {coder.spec.urn}.union(*map(urns, coder.component_coder_ids))

    ours = [p for p in components.pcollections.values() if "SpreadParts/" not in p.unique_name]
    assert len(ours) >= 6
    assert not any("pickled" in urn for p in ours for urn in urns(p.coder_id))
