import json
import time

import apache_beam as beam
import pytest
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp

from bubblerank.sessions.block import decode
from bubblerank.stream.replay import Replay
from pipelines.engine import choose_engine, run_pipeline
from pipelines.folder_progress import (
    FolderProgress,
    FolderRestrictions,
    FolderTracker,
    FolderWatermarks,
)
from pipelines.folder_watch import FolderWatch
from pipelines.follow_folder import FollowFolder, Following, LeaveAfter, _ReadFolder
from pipelines.read_sessions import ReadSessionFiles
from pipelines.replay import ReplaySettings, build_following
from tests.stream.logs import CONFIG, ITEMS, SECOND, blocks_of, make_log

ROWS = make_log(sessions=30)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def names(paths):
    return [path.rsplit("/", 1)[-1] for path in paths]


# The watch


def test_a_file_is_named_once_when_two_looks_find_it_unchanged(tmp_path):
    watch = FolderWatch(str(tmp_path))
    assert watch.look() == []
    assert not watch.stirs
    write(tmp_path / "a.jsonl", ROWS[:1])
    assert watch.look() == []
    assert watch.stirs
    write(tmp_path / "a.jsonl", ROWS[:2])
    assert watch.look() == []
    assert names(watch.look()) == ["a.jsonl"]
    assert not watch.stirs
    write(tmp_path / "a.jsonl", ROWS)
    assert [watch.look(), watch.look()] == [[], []]


def test_temporary_hidden_strange_and_empty_files_and_folders_are_ignored(tmp_path):
    for name in (".a.jsonl", "_b.jsonl", "c.jsonl.tmp", "d.jsonl.part", "e.csv", "f.jsonl~"):
        write(tmp_path / name, ROWS)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "folder.jsonl").mkdir()
    watch = FolderWatch(str(tmp_path))
    assert [watch.look(), watch.look(), watch.look()] == [[], [], []]
    assert not watch.stirs
    (tmp_path / ".a.jsonl").rename(tmp_path / "a.jsonl")
    assert watch.look() == []
    assert names(watch.look()) == ["a.jsonl"]
    every = FolderWatch(str(tmp_path), "jsonl", taken=["a.jsonl"])
    every.look()
    assert names(every.look()) == ["e.csv"]


# Tracker and watermark


def test_a_checkpoint_hands_the_rest_over_and_refuses_further_claims():
    tracker = FolderRestrictions().create_tracker(FolderRestrictions().initial_restriction("in"))
    with pytest.raises(ValueError, match="without ending or deferring"):
        tracker.check_done()
    read = FolderProgress(("a.jsonl",), 7, 1.5)
    assert tracker.try_claim(read)
    assert tracker.try_split(0.5) is None
    primary, residual = tracker.try_split(0)
    assert FolderProgress.from_json(primary) == read._replace(ended=True)
    assert FolderProgress.from_json(residual) == read
    assert not tracker.try_claim(read)
    assert tracker.try_split(0) is None
    tracker.check_done()
    assert not tracker.is_bounded()
    assert tracker.current_progress().completed_work == 1


def test_an_ended_folder_is_done():
    tracker = FolderTracker(FolderProgress().to_json())
    assert tracker.try_claim(FolderProgress(ended=True))
    assert not tracker.try_claim(FolderProgress())
    assert tracker.try_split(0) is None
    tracker.check_done()


def test_the_watermark_rises_in_whole_milliseconds_and_never_falls():
    provider = FolderWatermarks()
    watermark = provider.create_watermark_estimator(provider.initial_estimator_state("", ""))
    assert watermark.current_watermark() == MIN_TIMESTAMP
    watermark.rise_to(-(1 << 63))
    assert watermark.current_watermark() == MIN_TIMESTAMP
    watermark.rise_to(5_999)
    assert watermark.current_watermark() == Timestamp(micros=5_000)
    watermark.rise_to(2_000)
    again = provider.create_watermark_estimator(watermark.get_estimator_state())
    assert again.current_watermark() == Timestamp(micros=5_000)


# The source, driven by hand as a runner would


class Tracker(FolderTracker):
    """The view of a tracker that a DoFn is given."""

    deferred = False

    def defer_remainder(self, delay):
        self.deferred = True


def drive(source, folder, looks):
    """(outputs, watermark before each output, final watermark) of so many calls."""
    restriction = FolderRestrictions().initial_restriction(folder)
    state = FolderWatermarks().initial_estimator_state(folder, restriction)
    outputs = []
    for _ in range(looks):
        tracker = Tracker(restriction)
        watermark = FolderWatermarks().create_watermark_estimator(state)
        for output in source.process(folder, tracker, watermark):
            outputs.append((output, watermark.current_watermark()))
        state = watermark.get_estimator_state()
        if not tracker.deferred:
            tracker.check_done()
            return outputs, Timestamp(micros=state)
        _, restriction = tracker.try_split(0)
    return outputs, Timestamp(micros=state)


def test_blocks_are_never_late_against_their_own_watermark(tmp_path):
    write(tmp_path / "b.jsonl", ROWS[10:20])
    write(tmp_path / "a.jsonl", ROWS[20:])
    write(tmp_path / "c.jsonl", ROWS[:10])
    following = Following(str(tmp_path), lateness_us=3 * SECOND)
    source = _ReadFolder(following, ReadSessionFiles(block_sessions=4), None)
    outputs, reached = drive(source, str(tmp_path), 3)
    assert all(isinstance(output, TimestampedValue) for output, _ in outputs)
    assert all(output.timestamp >= watermark for output, watermark in outputs)
    found = [name for output, _ in outputs for name in decode(output.value[1]).session_ids]
    assert sorted(found) == sorted(row["session_id"] for row in ROWS)
    newest = max(row["event_time"] for row in ROWS)
    assert reached == Timestamp(micros=(newest - 3 * SECOND) // 1000 * 1000)


def test_a_checkpoint_between_files_repeats_and_forgets_none(tmp_path):
    for number in range(3):
        write(tmp_path / f"{number}.jsonl", ROWS[10 * number : 10 * number + 10])
    source = _ReadFolder(Following(str(tmp_path)), ReadSessionFiles(), None)
    first = Tracker(FolderProgress().to_json())
    watermark = FolderWatermarks().create_watermark_estimator(0)
    assert list(source.process("", first, watermark)) == []
    outputs = source.process("", first, watermark)
    found = [next(outputs)]
    _, residual = first.try_split(0)
    found += list(outputs)
    assert len(found) == 1
    assert watermark.current_watermark() == Timestamp(0)
    later = Tracker(residual)
    for _ in range(2):
        found += list(source.process("", later, watermark))
    ids = [name for output in found for name in decode(output.value[1]).session_ids]
    assert sorted(ids) == sorted(row["session_id"] for row in ROWS)


@pytest.mark.parametrize(
    "following",
    [
        {"idle_timeout_s": 0.01},
        {"until_us": 25 * SECOND},
        {"until_us": 20 * SECOND, "lateness_us": 5},
    ],
)
def test_the_source_ends_by_time_out_or_by_event_time(tmp_path, following):
    write(tmp_path / "a.jsonl", ROWS)
    source = _ReadFolder(Following(str(tmp_path), **following), ReadSessionFiles(), None)
    restriction = FolderProgress().to_json()
    watermark = FolderWatermarks().create_watermark_estimator(0)
    for _ in range(9):
        tracker = Tracker(restriction)
        list(source.process("", tracker, watermark))
        if not tracker.deferred:
            break
        restriction = tracker.try_split(0)[1]
        time.sleep(0.02)
    assert FolderProgress.from_json(tracker.current_restriction()).ended


def test_the_source_runs_as_a_splittable_step(tmp_path):
    write(tmp_path / "a.jsonl", ROWS[:20])
    (tmp_path / "b.jsonl").write_text("broken\n")

    def build(pipeline):
        following = Following(str(tmp_path), poll_every_s=0.1, idle_timeout_s=0.5)
        found = pipeline | FollowFolder(following, ReadSessionFiles())
        assert not found.blocks.is_bounded

    assert run_pipeline(build, choose_engine()[0]) == {
        "read": 21,
        "rejected": 1,
        "click_outside_list": 0,
    }


def test_sessions_at_or_after_the_end_are_left_and_counted_apart():
    blocks = [(query, data) for query, _, data in blocks_of(ROWS, size=7)]
    until_us = ROWS[12]["event_time"]
    kept_times = [row["event_time"] for row in ROWS if row["event_time"] < until_us]

    def check(pipeline):
        kept = pipeline | beam.Create(blocks) | LeaveAfter(until_us)
        times = kept | beam.FlatMap(lambda e: decode(e[1]).event_time_us.tolist())
        assert_that(times, equal_to(kept_times))

    counters = run_pipeline(check, choose_engine()[0])
    assert counters == {"after_until": 18, "read": -18}


# The pipeline for streaming runners


def test_the_following_pipeline_is_portable_and_unbounded(tmp_path):
    settings = ReplaySettings(Replay(CONFIG), (), str(tmp_path / "run"), {"q": ITEMS})
    pipeline = beam.Pipeline()
    following = Following("gs://bucket/in", until_us=7, lateness_us=5)
    build_following(pipeline, settings, following, 60.0)
    components = pipeline.to_runner_api().components
    steps = {
        transform.unique_name: beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload)
        for transform in components.transforms.values()
        if transform.spec.urn == "beam:transform:pardo:v1"
    }
    restriction = steps["FollowFolder/ReadFolder/ParDo(_ReadFolder)"].restriction_coder_id
    coder = components.coders[restriction]
    parts = [components.coders[part].spec.urn for part in coder.component_coder_ids]
    assert parts == ["beam:coder:string_utf8:v1", "beam:coder:varint:v1"]
    rank = steps["RankSessions/Rank/ParDo(_Rank)"]
    assert set(rank.state_specs) == {"cell", "waiting", "due_at"}
    assert list(rank.timer_family_specs) == ["ts-due"]
    unbounded = beam_runner_api_pb2.IsBounded.UNBOUNDED
    for collection in components.pcollections.values():
        if "ReadFolder" in collection.unique_name or "_Rank" in collection.unique_name:
            assert collection.is_bounded == unbounded, collection.unique_name
            assert "pickled" not in components.coders[collection.coder_id].spec.urn
