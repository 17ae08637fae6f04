"""`bubblerank replay --follow` as a user types it, with files that come while it runs."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise

import pyarrow.parquet as pq
import pytest

from bubblerank.compare import compare_runs
from bubblerank.run_folder import RunFolder
from tests.reference_logs import (
    FLAGS,
    PROBLEMS,
    SECOND,
    START,
    read_statistics,
    shuffled,
    statistic,
    trajectory,
    write_log,
)

SOON = 40.0


def wait_for(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, "what was waited for never came"
        time.sleep(0.02)


def drop(folder, name, rows):
    """Write a file under a hidden name and rename it into place."""
    written = write_log(folder / f".{name}", rows)
    os.rename(written, folder / name)


def displayed(run):
    files = sorted((run / "displays").glob("*.parquet")) if (run / "displays").is_dir() else []
    return sum(pq.read_metadata(file).num_rows for file in files)


def by_time(rows, *cuts):
    """The rows between cuts, in seconds since the first, each part shuffled."""
    bounds = [float("-inf"), *cuts, float("inf")]
    seconds = [(row["event_time"] - START) / SECOND for row in rows]
    return [
        shuffled(row for row, at in zip(rows, seconds, strict=True) if low <= at < high)
        for low, high in pairwise(bounds)
    ]


@pytest.fixture
def follow(bubblerank, problems_file, tmp_path):
    """Follow tmp_path/in into tmp_path/run while `come` runs beside it; must succeed."""
    folder, run = tmp_path / "in", tmp_path / "run"
    folder.mkdir()

    def call(come=lambda folder, run: None, flags=("--idle-timeout", "1s")):
        failed = []

        def beside():
            try:
                come(folder, run)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=beside)
        thread.start()
        words = ["replay", "--follow", folder, "--out", run, "--poll-every", "0.1s"]
        ended = bubblerank(*words, "--base-lists", problems_file, *FLAGS, *flags)
        thread.join()
        assert not failed, failed
        assert ended.code == 0, ended.err
        assert "Traceback" not in ended.err
        return run

    return call


def manifest(run):
    return json.loads((run / "run.json").read_text("utf-8"))


def books(run):
    names = ("read", "ranked", "rejected", "duplicate", "off_policy", "no_base_list")
    return {
        name: manifest(run)["counters"][name] for name in names if manifest(run)["counters"][name]
    }


def test_a_folder_followed_in_rounds_ends_in_the_rows_of_a_batch(
    follow, replay, tmp_path, known_sessions
):
    parts = by_time(known_sessions, 200.5, 450.5)
    names = ("c.parquet", "a.jsonl", "b.avro")
    flags = ("--snapshot-every", "2m")
    whole = []

    def come(folder, run):
        ranked = 0
        for name, rows in zip(names, parts, strict=True):
            drop(folder, name, rows)
            before = ranked
            wait_for(lambda before=before: displayed(run) > before)
            ranked = displayed(run)
            whole.append((run / "run.json").exists())

    run = follow(come, ("--idle-timeout", "2s", *flags))
    batch = replay(tmp_path / "in" / "*", flags=flags, out="batch")
    assert all(part.same for part in compare_runs(RunFolder(run), RunFolder(batch)))
    assert whole == [False] * 3
    assert not (run / ".writing").exists()
    told = manifest(run)
    assert told["settings"]["follow"]["way"] == "rounds"
    assert told["engine"] == "FnApiRunner"
    assert (told["counters"]["rounds"], told["counters"]["files"]) == (4, 3)
    same = ("read", "ranked", "off_policy", "duplicate", "queries", "exchanges")
    assert [told["counters"][name] for name in same] == [
        manifest(batch)["counters"][name] for name in same
    ]


def test_lateness_makes_room_for_files_that_overlap_and_what_is_later_still_is_rejected(
    follow, known_sessions, known_statistics
):
    early, middle, end = by_time(known_sessions, 290, 300)
    split = len(middle) // 2
    late = {**early[0], "event_time": START + 5 * SECOND, "session_id": "late one"}

    def come(folder, run):
        drop(folder, "1.jsonl", [*early, *middle[:split]])
        wait_for(lambda: displayed(run))
        drop(folder, "2.jsonl", [late, *middle[split:], *end, middle[0]])

    run = follow(come, ("--lateness", "30s", "--idle-timeout", "1s"))
    total = len(known_sessions)
    assert books(run) == {"read": total + 2, "ranked": total, "rejected": 1, "duplicate": 1}
    assert read_statistics(run) == known_statistics
    (file,) = (run / "rejects").glob("*.parquet")
    (reject,) = pq.read_table(file).to_pylist()
    assert reject["reason"] == "late"
    assert reject["source"].endswith("2.jsonl")
    assert json.loads(reject["payload"])["session_id"] == "late one"


def test_a_followed_day_goes_on_from_an_earlier_run_until_an_event_time(
    follow, replay, tmp_path, known_sessions
):
    until = START + 400 * SECOND
    first, second = by_time(known_sessions, 250.5)
    monday = replay(write_log(tmp_path / "monday.jsonl", first), out="monday")
    drop(tmp_path / "in", "tuesday.jsonl", second)
    run = follow(flags=("--until", until.isoformat(), "--resume", monday))
    left = sum(row["event_time"] >= until for row in known_sessions)
    assert books(run) == {key: len(second) - left for key in ("read", "ranked")}
    assert manifest(run)["counters"]["after_until"] == left
    assert read_statistics(run) == {
        problem.query: statistic(problem, trajectory(problem, 399).progress.state)
        for problem in PROBLEMS
    }


def test_an_empty_folder_ends_in_an_empty_run(follow):
    run = follow(flags=("--idle-timeout", "0.3s"))
    assert books(run) == {}
    assert manifest(run)["rows"] == {}


def test_ctrl_c_ends_well_with_final_statistics(
    tmp_path, problems_file, known_sessions, known_statistics
):
    folder, run = tmp_path / "in", tmp_path / "run"
    folder.mkdir()
    drop(folder, "all.parquet", known_sessions)
    words = ["replay", "--follow", folder, "--out", run, "--poll-every", "0.1s"]
    words += ["--base-lists", problems_file, *FLAGS]
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.main", *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: displayed(run) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SOON)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "ending: final statistics" in err
    assert read_statistics(run) == known_statistics


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--log", "x.jsonl", "--follow", "in"], "not allowed with argument"),
        ([], "one of the arguments --log --follow is required"),
        (["--follow", "in"], "give --base-lists a file, or first"),
        (["--follow", "no", "--base-lists", "first"], "no folder"),
        (["--follow", "run", "--base-lists", "first"], "is the followed folder"),
        (["--log", "x.jsonl", "--until", "2026-01-01"], "--until: only with --follow"),
        (
            ["--log", "x", "--poll-every", "1s", "--lateness", "0s"],
            "--poll-every, --lateness: only",
        ),
        (["--follow", "in", "--feedback", "model"], "give --log in place of --follow"),
        (["--follow", "in", "--until", "soon"], "must be a time such as"),
        (["--follow", "in", "--base-lists", "first", "--turn-every", "1m"], "streaming runners"),
        (["--follow", "in", "--base-lists", "first", "--", "--streaming"], "follow in rounds"),
    ],
)
def test_flags_that_cannot_go_together_are_refused(
    bubblerank, tmp_path, monkeypatch, flags, complaint
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "run").mkdir()
    ended = bubblerank("replay", "--out", "run", *flags)
    assert ended.code == 2
    assert complaint in ended.err
    assert not list((tmp_path / "run").iterdir())
