"""The whole way on a small example: simulate, make a log of it, replay the log, compare.

`python examples/demo.py [FOLDER]` (default: runs/demo) exits with 0 only if the replayed log ends
in exactly the statistics of the simulation that made it.
"""

import datetime
import os
import random
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import schemas
from bubblerank.problems import Problem, write_problems

STEPS = 50_000
SEED = 2019
QUERIES = {
    "running shoes": "CM",
    "rain jacket": "CM",
    "wool socks": "DCM",
    "tent 2 persons": "DCM",
    "head torch": "PBM",
    "größe 42": "PBM",
}
FIRST_SESSION = datetime.datetime(2026, 1, 5, 8, tzinfo=datetime.UTC)
LOG_FILES = 3


def make_problem(query: str, click_model: str) -> Problem:
    """Ten products in a production order that is good, but not the best."""
    rng = random.Random(query)
    appeal = [0.6 * 0.72**rank + rng.uniform(0.0, 0.02) for rank in range(10)]
    believed = [value * rng.uniform(0.2, 1.8) for value in appeal]
    order = sorted(range(10), key=lambda item: -believed[item])
    abandonment = [round(0.9 - 0.05 * k, 2) for k in range(10)]
    examination = [round((k + 1) ** -0.6, 3) for k in range(10)]
    return Problem(
        query=query,
        items=[f"{query.split()[-1]}-{item + 1:02}" for item in order],
        click_model=click_model,
        attraction=[round(appeal[item], 3) for item in order],
        abandonment=abandonment if click_model == "DCM" else None,
        examination=examination if click_model == "PBM" else None,
    )


def make_log(displays: Path, folder: Path) -> None:
    """BubbleRank's displays as sessions, a second apart, shuffled over some Parquet files."""
    table = pq.read_table(displays, filters=[("ranker", "=", "bubblerank")])
    step = table.column("step")
    start_us = int(FIRST_SESSION.timestamp()) * 1_000_000
    session_ids = pc.binary_join_element_wise(table.column("query"), step.cast(pa.string()), "#")
    times = pc.add(pc.multiply(step, 1_000_000), start_us).cast(pa.timestamp("us", "UTC"))
    columns = [table.column("query"), session_ids, times]
    columns += [table.column("displayed"), table.column("clicks"), step]
    log = pa.table(columns, schema=schemas.arrow_schema("session"))
    order = list(range(log.num_rows))
    random.Random(SEED).shuffle(order)
    folder.mkdir()
    for number in range(LOG_FILES):
        pq.write_table(log.take(order[number::LOG_FILES]), folder / f"part-{number}.parquet")
    say(f"\n# {log.num_rows:,} displays as a log: {folder}/part-*.parquet, in no order")


def bubblerank(*words: str) -> int:
    """Show a command, run it as a user would, and give its exit code."""
    say(f"\n$ bubblerank {shlex.join(words)}")
    installed = Path(sys.executable).with_name("bubblerank")
    command = [str(installed)] if installed.exists() else [sys.executable, "-m", "commands.main"]
    return subprocess.run([*command, *words]).returncode


def say(text: str) -> None:
    print(text, flush=True)


def main(folder: Path) -> int:
    """Run the demonstration; 0 if the statistics agree."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    problems = folder / "problems.jsonl"
    simulated, replayed = folder / "simulated", folder / "replayed"
    write_problems(problems, [make_problem(query, model) for query, model in QUERIES.items()])
    say(f"# {len(QUERIES)} queries with a production list and a click model each: {problems}")

    commands = [
        f"simulate --problems {problems} --steps {STEPS} --seed {SEED} "
        f"--ranker bubblerank,baseline --displays --out {simulated}",
        f"replay --log {folder}/log/part-*.parquet --base-lists {problems} "
        f"--horizon {STEPS} --out {replayed}",
        f"compare {simulated} {replayed} --part statistics",
    ]
    for command in commands:
        if command.startswith("replay"):
            make_log(simulated / "displays", folder / "log")
        code = bubblerank(*command.split())
        if code:
            say(f"\nFAILED: the command above ended with exit code {code}")
            return code
    say(
        f"""
OK: the replayed log ends in exactly the statistics of the simulation.

What to look at next:
  what one query has taught      bubblerank inspect {replayed} --query 'head torch'
  what a third of the log does   bubblerank replay --log {folder}/log/part-0.parquet \\
                                   --base-lists {problems} --out {folder}/third
  what every file holds          bubblerank schema list
  how the runs were made         {simulated}/run.json, {replayed}/run.json
  the rows                       {simulated}/metrics, {replayed}/displays (Parquet)"""
    )
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUTF8", "1")
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo")))
