"""Replay of 5 million sessions, ten positions, from Parquet to Parquet, by the whole pipeline.

The log is BubbleRank's own, so every session is consumed and displayed; base lists are given.
Everything is CPU time of one process, without importing and compiling; the peak memory is the
whole process's. The plain replay (benchmarks.plain_replay) takes the streams of some of the
queries. Only reading and writing: pyarrow reads the log and writes the displays that the replay
wrote.
Set BUBBLERANK_BENCH_SCALE=0.02 for a quick look.
"""

import glob
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.click_log import ROW_GROUP_ROWS, base_lists, write_click_log
from benchmarks.measuring import in_own_process, scaled, verdict
from bubblerank.config import RankerConfig

SESSIONS = 5_000_000
QUERIES = (1_000, 100_000)
SAMPLE = 20_000
TIMES_PLAIN = 20
GIBIBYTES = 4
TIMES_FILES = 4
CONFIG = RankerConfig(horizon=100_000)


def replay_cpu_seconds(log: str, out: str, queries: int) -> float:
    """CPU seconds of the pipeline; every session must come out as a display."""
    from bubblerank.stream.replay import Replay
    from pipelines.engine import choose_engine, run_pipeline
    from pipelines.replay import ReplaySettings, build

    lists = base_lists(queries)

    def spend(part: str, log: str) -> float:
        settings = ReplaySettings(Replay(CONFIG), (log,), f"{out}/{part}", base_lists=lists)
        options, _ = choose_engine()
        begun = time.process_time()
        counters = run_pipeline(lambda pipeline: build(pipeline, settings), options)
        spent = time.process_time() - begun
        if counters["ranked"] != counters["read"]:
            raise RuntimeError(f"not every session was ranked: {counters}")
        return spent

    with tempfile.TemporaryDirectory() as folder:
        warm_up = f"{folder}/warm.parquet"
        write_click_log(Path(warm_up), 100, min(10, queries), CONFIG)
        spend("warm", warm_up)
    return spend("run", log)


def plain_seconds_a_session(folder: str, sessions: int, queries: int) -> float:
    """CPU seconds a session of the plain replay, on the whole streams of some queries."""
    from benchmarks.plain_replay import plain_cpu_seconds

    few = max(1, round(queries * SAMPLE / sessions))
    lists = base_lists(few)
    for part, count in (("warm", few), ("sample", SAMPLE)):
        log = f"{folder}/{part}.parquet"
        write_click_log(Path(log), count, few, CONFIG)
        spent = plain_cpu_seconds(log, f"{folder}/plain-{part}", CONFIG, lists)
    return spent / SAMPLE


def files_cpu_seconds(log: str, displays: str, out: str) -> float:
    """CPU seconds of reading the log and writing the displays with pyarrow alone."""
    begun = time.process_time()
    for _ in pq.ParquetFile(log).iter_batches(ROW_GROUP_ROWS, use_threads=False):
        pass
    spent = time.process_time() - begun
    for path in glob.glob(f"{displays}/*.parquet"):
        file = pq.ParquetFile(path)
        with pq.ParquetWriter(
            out, file.schema_arrow, compression="zstd", compression_level=1
        ) as writer:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                begun = time.process_time()
                writer.write_table(table)
                spent += time.process_time() - begun
    return spent


def run() -> Iterator[dict[str, object]]:
    for most in QUERIES:
        sessions, queries = scaled(SESSIONS, SAMPLE), scaled(most, 100)
        with tempfile.TemporaryDirectory() as folder:
            log = f"{folder}/log.parquet"
            in_own_process(write_click_log, Path(log), sessions, queries, CONFIG)
            spent, peak = in_own_process(replay_cpu_seconds, log, f"{folder}/out", queries)
            plain, _ = in_own_process(plain_seconds_a_session, folder, sessions, queries)
            files, _ = in_own_process(
                files_cpu_seconds, log, f"{folder}/out/run/displays", f"{folder}/only.parquet"
            )
        at_most = f"at most {TIMES_FILES}" if most == QUERIES[0] else ""
        figures = [
            ("sessions a CPU second", sessions / spent, "", True),
            ("peak memory, GiB", peak, f"below {GIBIBYTES}", peak < GIBIBYTES),
            ("plain replay, sessions a CPU second", 1 / plain, "", True),
            (
                "times faster than the plain replay",
                plain * sessions / spent,
                f"at least {TIMES_PLAIN}",
                plain * sessions / spent >= TIMES_PLAIN,
            ),
            (
                "times the CPU of only reading and writing",
                spent / files,
                at_most,
                spent / files <= TIMES_FILES,
            ),
        ]
        for name, value, bound, met in figures:
            yield {
                "sessions": sessions,
                "queries": queries,
                "figure": name,
                "measured": value,
                "bound": bound,
                "met": verdict(met) if bound else "",
            }
