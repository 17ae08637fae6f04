"""Cost of a replayed session, from 0.1 to 10 million sessions of 1,000 each: it stays flat.

The log and the pipeline of benchmarks.replay. Building and starting a pipeline costs about half
a second whatever the log; it is measured by a log of ten sessions, shown, and not counted.
Set BUBBLERANK_BENCH_SCALE=0.02 for a quick look.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.click_log import write_click_log
from benchmarks.measuring import in_own_process, scaled, verdict
from benchmarks.replay import CONFIG, replay_cpu_seconds

SIZES = (10, 100_000, 1_000_000, 10_000_000)
SESSIONS_A_QUERY = 1_000
AT_MOST = 1.25


def measure(sessions: int) -> tuple[float, float]:
    """CPU seconds and peak GiB of the replay of so many sessions."""
    queries = -(-sessions // SESSIONS_A_QUERY)
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/log.parquet"
        in_own_process(write_click_log, Path(log), sessions, queries, CONFIG)
        seconds, peak = in_own_process(replay_cpu_seconds, log, f"{folder}/out", queries)
    return seconds, peak


def run() -> Iterator[dict[str, object]]:
    smallest = start = 0.0
    for size in SIZES:
        sessions = size if size == SIZES[0] else scaled(size, 1_000)
        seconds, peak = measure(sessions)
        row = {"sessions": sessions, "CPU seconds": seconds, "peak GiB": peak}
        if not start:
            start = seconds
            yield {**row, "us/session": "", "times the smallest": "", "at most": "", "met": ""}
            continue
        cost = (seconds - start) / sessions * 1e6
        smallest = smallest or cost
        yield {
            **row,
            "us/session": f"{cost:.2f}",
            "times the smallest": f"{cost / smallest:.2f}",
            "at most": str(AT_MOST),
            "met": verdict(cost <= AT_MOST * smallest),
        }
