"""Logs whose every session is known: made by the readable ranker, written in any format."""

import datetime
import json
import random

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import schemas
from bubblerank.closed_loop import advance_reference, begin
from bubblerank.config import RankerConfig
from bubblerank.problems import Problem
from bubblerank.simulation import make_experiment

START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
CONFIG = RankerConfig(delta=0.1)
FLAGS = ["--delta", "0.1"]
ATTRACTION = (0.05, 0.1, 0.02, 0.4, 0.15, 0.9)
PROBLEMS = (
    Problem("shoes", tuple("abcdef"), "CM", ATTRACTION),
    Problem(
        "größe 42", tuple("uvwxyz"), "PBM", ATTRACTION, examination=(1, 0.9, 0.8, 0.7, 0.6, 0.5)
    ),
    Problem("帽子", ("h1", "h2", "h3", "h4", "h5"), "DCM", ATTRACTION[:5], abandonment=(0.5,) * 5),
)


def trajectory(problem, steps, config=CONFIG, seed=0, run=0):
    """What the readable ranker did: its last state, its displays and its metrics."""
    experiment = make_experiment(problem, "bubblerank", config, run, seed, 5)
    return advance_reference(experiment, begin(experiment), steps, displays=True)


def sessions(problem, advance, *, with_step=True, first=1):
    """The displays of a trajectory as sessions, a second apart."""
    rows = []
    shown = zip(advance.displays.displayed, advance.displays.clicked, strict=True)
    for step, (displayed, clicked) in enumerate(shown, start=first):
        rows.append(
            {
                "query": problem.query,
                "session_id": f"{problem.query}-{step:06}",
                "event_time": START + step * SECOND,
                "items": [problem.items[item] for item in displayed],
                "clicks": [bool(click) for click in clicked],
                "step": step if with_step else None,
            }
        )
    return rows


def statistic(problem, state):
    """(step, initial, base, pairs) that a run's statistics must hold for this state."""
    pairs = {}
    for i, upper in enumerate(problem.items):
        for j in range(i + 1, len(problem.items)):
            if state.trials[i, j]:
                counts = int(state.wins[i, j]), int(state.trials[i, j])
                pairs[upper, problem.items[j]] = counts
    return state.step, list(problem.items), [problem.items[item] for item in state.base], pairs


def read_statistics(run):
    """As `statistic`, by query, of the latest row of each query of a run."""
    found = {}
    for row in pq.read_table(run / "statistics").sort_by("step").to_pylist():
        pairs = {(p["upper"], p["lower"]): (p["wins"], p["trials"]) for p in row["pairs"]}
        found[row["query"]] = row["step"], row["initial"], row["base"], pairs
    return found


def books(run):
    """(ranked, rejected, duplicate, off_policy, no_base_list) of a run that balances."""
    counters = json.loads((run / "run.json").read_text())["counters"]
    names = ("ranked", "rejected", "duplicate", "off_policy", "no_base_list")
    fates = tuple(counters[name] for name in names)
    assert counters["read"] == sum(fates)
    return fates


def reasons(run):
    """The reasons of a run's rejects, sorted."""
    return sorted(pq.read_table(run / "rejects").column("reason").to_pylist())


def write_log(path, rows):
    """Write sessions as .jsonl, .avro or .parquet."""
    if path.suffix == ".jsonl":
        lines = [json.dumps(row, ensure_ascii=False, default=_iso) + "\n" for row in rows]
        path.write_text("".join(lines), "utf-8")
    elif path.suffix == ".avro":
        with path.open("wb") as file:
            fastavro.writer(file, schemas.load("session"), rows, codec="deflate")
    else:
        pq.write_table(pa.Table.from_pylist(rows, schema=schemas.arrow_schema("session")), path)
    return str(path)


def _iso(value):
    return value.isoformat()


def shuffled(rows, seed=1):
    rows = list(rows)
    random.Random(seed).shuffle(rows)
    return rows
