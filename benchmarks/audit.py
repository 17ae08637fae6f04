"""The audit of 0.1 to 10 million displays, K = 10: displays per CPU second, memory.

From Parquet files to verdicts, each in a process of its own, kernels compiled before, CPU time.
The rate is the library's (reading included); the command adds 0.6 s of Beam whatever the size.
The clean run is made by `simulate --displays`; in the end a row in each of seven queries
is tampered with: far items, wrong parity, a decided pair, a click, a base list, missing, doubled.
Set BUBBLERANK_BENCH_SCALE=0.02 for a quick look (fewer displays).
"""

import contextlib
import io
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.measuring import in_own_process, scaled, verdict

QUERIES = 10
SIZES = (100_000, 1_000_000, 10_000_000)
SAFETY, STRUCTURE, EVERYTHING = "safety", "structure,statistics", "all"
AT_LEAST = {SAFETY: 1_000_000, STRUCTURE: 300_000, EVERYTHING: 300_000}
SEED = 3


def problems():
    import numpy as np

    from bubblerank.problems import Problem

    coins = np.random.default_rng(7)
    return [
        Problem(
            query=f"q{number}",
            items=tuple(f"q{number}-d{item}" for item in range(10)),
            click_model="CM",
            attraction=tuple(coins.uniform(0.02, 0.7, 10).round(3).tolist()),
        )
        for number in range(QUERIES)
    ]


def make_run(folder: str, displays: int) -> None:
    """A simulation with its displays, and its problems beside it."""
    from bubblerank.problems import write_problems
    from commands.main import main

    write_problems(Path(folder) / "problems.jsonl", problems())
    words = ["simulate", "--problems", f"{folder}/problems.jsonl", "--displays", "--quiet"]
    words += ["--steps", str(displays // QUERIES), "--seed", str(SEED)]
    with contextlib.redirect_stdout(io.StringIO()):
        code = main([*words, "--out", f"{folder}/run"])
    if code:
        raise SystemExit("simulate failed")


def tamper(folder: str) -> list[tuple[str, int]]:
    """Tamper with one row in each of seven queries; their (query, step)."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    run = Path(folder, "run")
    middle = json.loads((run / "run.json").read_text())["settings"]["steps"] // 2
    ways = {
        ("q0", middle): far_items,
        ("q1", middle + 1): wrong_parity,
        ("q2", middle): flipped_click,
        ("q3", middle): missing_step,
        ("q4", middle + 1): doubled_step,
        ("q5", middle): changed_base,
        decided_step(run): decided_pair,
    }
    (path,) = (run / "displays").glob("*.parquet")
    opened = pq.ParquetFile(path)
    spoilt = path.with_suffix(".new")
    with pq.ParquetWriter(spoilt, opened.schema_arrow, compression="zstd") as writer:
        for group in range(opened.metadata.num_row_groups):
            table = opened.read_row_group(group)
            for (query, step), way in ways.items():
                here = pc.and_(pc.equal(table["query"], query), pc.equal(table["step"], step))
                at = pc.index(here, True).as_py()
                if at >= 0:
                    rows = way(table.slice(at, 1).to_pylist()[0])
                    bad = pa.Table.from_pylist(rows, schema=table.schema)
                    table = pa.concat_tables([table.slice(0, at), bad, table.slice(at + 1)])
            writer.write_table(table)
    spoilt.rename(path)
    return sorted(ways)


def exchanged(row: dict, one: int, other: int, part: str = "displayed") -> list[dict]:
    items = list(row[part])
    items[one], items[other] = items[other], items[one]
    return [{**row, part: items}]


def far_items(row: dict) -> list[dict]:
    return exchanged(row, 1, 6)


def wrong_parity(row: dict) -> list[dict]:
    upper = 1 - row["step"] % 2
    return exchanged(row, upper, upper + 1)


def flipped_click(row: dict) -> list[dict]:
    return [{**row, "clicks": [not row["clicks"][0], *row["clicks"][1:]]}]


def missing_step(row: dict) -> list[dict]:
    return []


def doubled_step(row: dict) -> list[dict]:
    return [row, row]


def changed_base(row: dict) -> list[dict]:
    return exchanged(row, 3, 4, "base")


def decided_pair(row: dict) -> list[dict]:
    upper = row["step"] % 2
    return exchanged(row, upper, upper + 1)


def decided_step(run: Path) -> tuple[str, int]:
    """A query and one of its last two steps, in which the first pair of its parity is decided."""
    import pyarrow.parquet as pq

    for told in pq.read_table(run / "statistics").to_pylist()[6:]:
        level = 4 * told["log_inverse_delta"]
        pairs = {(p["upper"], p["lower"]): (p["wins"], p["trials"]) for p in told["pairs"]}
        pairs |= {(low, up): (-wins, trials) for (up, low), (wins, trials) in pairs.items()}
        for step in (told["step"], told["step"] - 1):
            upper, lower = told["base"][step % 2 : step % 2 + 2]
            wins, trials = pairs.get((upper, lower), (0, 0))
            if wins > 20 and (wins - 2) ** 2 > level * trials:
                return told["query"], step
    raise SystemExit("no pair is decided: take more displays")


def by_library(folder: str, checks: str) -> float:
    """CPU seconds from Parquet files to outcomes, without Beam; the shorter of two passes."""
    from collections import defaultdict

    import pyarrow.parquet as pq

    from bubblerank.audit.audit_history import audit_history
    from bubblerank.audit.checks import CHECK_NAMES
    from bubblerank.audit.history import History
    from bubblerank.audit.inputs import find_inputs, settings_of
    from bubblerank.audit.read_displays import LIST_COLUMNS, read_displays

    wanted = CHECK_NAMES if checks == EVERYTHING else tuple(checks.split(","))
    columns = ("displayed",) if checks == SAFETY else LIST_COLUMNS
    truth = {problem.query: problem for problem in problems()}

    def once(where: str) -> float:
        begun = time.process_time()
        inputs = find_inputs([f"{where}/run"])
        settings = replace(settings_of(inputs.manifest, wanted), statistics=True, same_users=True)
        blocks, statistics = defaultdict(list), defaultdict(list)
        for path in inputs.displays:
            groups = range(pq.read_metadata(path).num_row_groups)
            for key, block in read_displays(path, str(path), groups, columns):
                blocks[key].append(block.to_bytes())
        for path in inputs.statistics:
            for told in pq.read_table(path).to_pylist():
                statistics[told["ranker"], told["query"], told["run"]].append(told)
        for key, data in blocks.items():
            problem = truth[key.query]
            history = History(key, data, statistics[key], None, problem, None, production=True)
            found = audit_history(history, settings)
            if any(outcome.failed for outcome in found.outcomes.values()):
                raise SystemExit(f"the clean run of {key.query} failed")
        return time.process_time() - begun

    once(warm(folder))
    return min(once(folder), once(folder))


def by_pipeline(folder: str, checks: str) -> tuple[float, int, dict]:
    """CPU seconds of the command, highest resident kilobytes, and what it said."""
    import resource

    from commands.main import main

    words = ["audit", f"{folder}/run", "--problems", f"{folder}/problems.jsonl", "--quiet"]
    words += ["--format", "json"]
    if checks != EVERYTHING:
        words += ["--check", checks]
    other = warm(folder)
    with contextlib.redirect_stdout(io.StringIO()):
        main([word.replace(folder, other) for word in words])
    told = io.StringIO()
    begun = time.process_time()
    with contextlib.redirect_stdout(told):
        main(words)
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return seconds, peak, json.loads(told.getvalue())


def warm(folder: str) -> str:
    """A small run beside, to compile and to start with."""
    small = Path(folder).parent / "warm"
    if not small.exists():
        small.mkdir()
        make_run(str(small), 1000)
    return str(small)


def run() -> Iterator[dict[str, object]]:
    with tempfile.TemporaryDirectory() as top:
        for size in SIZES:
            displays = scaled(size, 10_000) // QUERIES * QUERIES
            folder = f"{top}/{size}"
            Path(folder).mkdir()
            in_own_process(make_run, folder, displays)
            for checks in (SAFETY, STRUCTURE, EVERYTHING):
                seconds, _ = in_own_process(by_library, folder, checks)
                (whole, peak, told), _ = in_own_process(by_pipeline, folder, checks)
                rate = displays / seconds
                yield {
                    "displays": displays,
                    "checks": checks,
                    "M/CPU s": f"{rate / 1e6:.2f}",
                    "at least": f"{AT_LEAST[checks] / 1e6:.1f}",
                    "met": verdict(rate >= AT_LEAST[checks]),
                    "command, CPU s": f"{whole:.1f}",
                    "peak MB": peak // 1024,
                    "said": told["verdict"],
                }
        bad, _ = in_own_process(tamper, folder)
        (whole, peak, told), _ = in_own_process(by_pipeline, folder, EVERYTHING)
        named = {
            (failure["query"], failure["step"])
            for check in told["checks"]
            for failure in check["first_failures"]
            if check["check"] in ("completeness", "recompute")
        }
        yield {
            "displays": displays,
            "checks": f"all, {len(bad)} bad rows",
            "M/CPU s": "",
            "at least": "",
            "met": verdict(named == set(bad)),
            "command, CPU s": f"{whole:.1f}",
            "peak MB": peak // 1024,
            "said": f"{told['verdict']}, names {len(named & set(bad))} of {len(bad)}",
        }
