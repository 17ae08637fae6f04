"""The unbounded source on a runner that keeps event-time order; needs `PRISM=<path of prism>`."""

import os

import pytest

from bubblerank.compare import compare_runs
from bubblerank.run_folder import RunFolder
from tests.reference_logs import FLAGS, shuffled, write_log

PRISM = os.environ.get("PRISM", "")


@pytest.mark.skipif(not PRISM, reason="PRISM does not name Beam's prism binary")
def test_a_folder_followed_as_a_stream_ends_in_the_rows_of_a_batch(
    bubblerank, replay, problems_file, tmp_path, known_sessions
):
    folder, run = tmp_path / "in", tmp_path / "stream"
    folder.mkdir()
    write_log(folder / "1.parquet", shuffled(known_sessions[::2]))
    write_log(folder / "2.jsonl", shuffled(known_sessions[1::2]))
    words = ["replay", "--follow", folder, "--out", run, "--base-lists", problems_file, *FLAGS]
    words += ["--idle-timeout", "4s", "--poll-every", "1s", "--turn-every", "100s"]
    ended = bubblerank(*words, "--", "--runner=PrismRunner", f"--prism_location={PRISM}")
    assert ended.code == 0, ended.err
    batch = replay(folder / "*", out="batch")
    assert all(part.same for part in compare_runs(RunFolder(run), RunFolder(batch)))
