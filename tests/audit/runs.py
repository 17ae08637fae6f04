"""Small runs in memory, their rows as dictionaries, and the audit of them without Beam."""

import copy
import random
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

import schemas
from bubblerank.audit.audit_history import audit_history
from bubblerank.audit.checks import CHECK_NAMES
from bubblerank.audit.finding import Key
from bubblerank.audit.history import History
from bubblerank.audit.read_displays import read_displays
from bubblerank.audit.settings import AuditSettings
from bubblerank.closed_loop import advance_compiled, begin
from bubblerank.config import RankerConfig
from bubblerank.problems import Problem
from bubblerank.simulation import make_experiment
from tests.statistic_records import statistic_record

CHECKS = tuple(name for name in CHECK_NAMES if name != "books")


@dataclass
class SmallRun:
    """One learner's displays and statistics, as a simulation wrote them."""

    problem: Problem
    config: RankerConfig
    ranker: str
    seed: int
    rows: list = field(default_factory=list)
    statistics: list = field(default_factory=list)
    steps: int = 0

    def copy(self):
        return copy.deepcopy(self)


def small_run(problem, config, ranker="bubblerank", steps=200, seed=0, run=0):
    experiment = make_experiment(problem, ranker, config, run, seed, 5)
    advance = advance_compiled(experiment, begin(experiment), steps, displays=True)
    displays = advance.displays
    rows = [
        {
            "ranker": ranker,
            "query": problem.query,
            "run": run,
            "step": step + 1,
            "session_id": None,
            "event_time": None,
            "base": [problem.items[item] for item in displays.base[step]],
            "displayed": [problem.items[item] for item in displays.displayed[step]],
            "clicks": [bool(click) for click in displays.clicked[step]],
        }
        for step in range(steps)
    ]
    statistics = []
    if ranker == "bubblerank":
        state = advance.progress.state
        level = experiment.config.log_inverse_delta(state.horizon)
        statistics = [statistic_record(ranker, problem.query, run, problem.items, state, level)]
    return SmallRun(problem, config, ranker, seed, rows, statistics, steps)


def random_problem(chance, shown=None, items=None):
    shown = shown or chance.randint(2, 7)
    items = items or shown + chance.choice([0, 0, 1, 3])
    attraction = [round(chance.random(), 2) for _ in range(items)]
    model = chance.choice(["CM", "DCM", "PBM"]) if items == shown else chance.choice(["DCM", "PBM"])
    by_position = {"DCM": "abandonment", "PBM": "examination"}.get(model)
    values = {by_position: [round(0.3 + 0.7 * chance.random(), 2) for _ in range(shown)]}
    return Problem(
        query=f"q{chance.randint(0, 9)}",
        items=[f"d{place}" for place in range(items)],
        click_model=model,
        attraction=attraction,
        **(values if by_position else {}),
    )


def random_config(chance, ranker="bubblerank"):
    """Settings under which a hundred sessions decide pairs."""
    if ranker != "bubblerank":
        return RankerConfig(horizon=chance.choice([50, 200, 1000]))
    freeze = chance.random() < 0.5
    return chance.choice(
        [
            RankerConfig(horizon=chance.choice([2, 3, 10]), freeze_decided=freeze),
            RankerConfig(delta=chance.uniform(0.1, 0.9), freeze_decided=freeze),
            RankerConfig(first_horizon=chance.randint(2, 20), freeze_decided=freeze),
        ]
    )


def random_run(seed, ranker="bubblerank", steps=160):
    chance = random.Random(seed)
    problem = random_problem(chance)
    return small_run(problem, random_config(chance, ranker), ranker, steps, chance.randint(0, 99))


def blocks_of(rows, group_rows=None):
    """(key, bytes) of rows that went through a Parquet file."""
    table = pa.Table.from_pylist(rows, schema=schemas.arrow_schema("display"))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=group_rows or max(1, len(rows)), store_schema=False)
    file = pa.BufferReader(sink.getvalue())
    groups = range(pq.read_metadata(file).num_row_groups)
    return [(key, block.to_bytes()) for key, block in read_displays(file, "memory", groups)]


def settings_of(run, **other):
    values = {
        "checks": CHECKS,
        "config": run.config,
        "positions": None,
        "seed": run.seed,
        "command": "simulate",
        "steps": run.steps,
        "statistics": bool(run.statistics),
    }
    return AuditSettings(**{**values, **other})


def audit(run, truth=True, group_rows=None, **other):
    """The audit of a small run; ``truth`` gives the problem with its attractions."""
    key = Key(run.ranker, run.problem.query, 0)
    history = History(
        key,
        [data for _, data in blocks_of(run.rows, group_rows)],
        run.statistics,
        None,
        run.problem if truth else None,
        None,
        production=True,
    )
    return audit_history(history, settings_of(run, same_users=truth, **other))


def violations(found, *checks):
    """Findings of violations, of some checks or of all."""
    return [
        finding
        for finding in found.findings()
        if finding.severity == "violation" and (not checks or finding.check in checks)
    ]
