import itertools

import pyarrow.parquet as pq
import pytest

import schemas
from bubblerank.config import RankerConfig
from bubblerank.errors import UsageError
from bubblerank.simulation import simulate
from bubblerank.stream.outputs import Output, Stepped
from bubblerank.stream.simulate import Simulation
from pipelines.engine import choose_engine, run_pipeline
from pipelines.simulate import SimulateSettings, build
from tests.reference_logs import PROBLEMS


def settings(tmp_path, **changes):
    simulation = Simulation(RankerConfig(horizon=200), 5, 5, (1, 50, 100, 200), displays=True)
    given = {
        "simulation": simulation,
        "problems": PROBLEMS,
        "rankers": ("bubblerank", "baseline"),
        "runs": 2,
        "steps": 200,
        "out": str(tmp_path),
    }
    return SimulateSettings(**{**given, **changes})


def run(given):
    options, _ = choose_engine()
    return run_pipeline(lambda pipeline: build(pipeline, given), options)


def test_every_learner_takes_every_step_and_the_counters_say_so(tmp_path):
    """Blocks of 64 steps do not divide 200."""
    counters = run(settings(tmp_path, block_steps=64))
    learners = len(PROBLEMS) * 2 * 2
    assert counters["read"] == counters["ranked"] == learners * 200
    assert counters["rows_display"] == learners * 200
    assert counters["rows_metric"] == learners * 4
    assert counters["rows_statistic"] == len(PROBLEMS) * 2
    displays = pq.read_table(tmp_path / "displays", columns=["ranker", "query", "run", "step"])
    assert displays.group_by(displays.column_names).aggregate([]).num_rows == learners * 200


def test_the_metrics_are_those_of_the_library(tmp_path):
    run(settings(tmp_path, runs=1))
    found = pq.read_table(tmp_path / "metrics", schema=schemas.arrow_schema("metric"))
    expected = simulate(
        PROBLEMS, ("bubblerank", "baseline"), 200, 1, 5, checkpoints=(1, 50, 100, 200)
    )
    keys = [(key, "ascending") for key in ("ranker", "query", "step")]
    assert found.sort_by(keys).equals(expected.sort_by(keys))


def test_one_query_may_have_a_problem_of_each_click_model(tmp_path):
    from dataclasses import replace

    cm = PROBLEMS[0]
    pbm = replace(PROBLEMS[1], query=cm.query)
    run(settings(tmp_path, problems=(cm, pbm), rankers=("bubblerank",), runs=1))
    found = pq.read_table(tmp_path / "metrics").to_pylist()
    assert {(row["query"], row["click_model"]) for row in found} == {
        (cm.query, "CM"),
        (cm.query, "PBM"),
    }


def test_displays_of_a_huge_block_come_in_chunks_while_it_is_stepped_through():
    """A thousand million steps in one block: the first rows are there at once."""
    from bubblerank.stream.simulate import Task, arrivals

    simulation = Simulation(RankerConfig(horizon=10**9), 5, 5, (10**9,), displays=True)
    task = Task("bubblerank", PROBLEMS[0], 0)
    turn = simulation.turn(task.key, None, [task.to_bytes(), arrivals(1, 10**9)], None)
    outputs = list(itertools.islice(turn, 6))
    steps = [output.sessions for output in outputs if isinstance(output, Stepped)]
    sizes = [len(output.data) for output in outputs if isinstance(output, Output)]
    assert 0 < max(steps) <= 100_000
    assert len(sizes) >= 2 and max(sizes) < 50_000_000


def test_everything_that_would_fail_later_is_told_at_once(tmp_path):
    with pytest.raises(UsageError) as caught:
        settings(tmp_path, rankers=("bubblerank", "topr", "basline")).check()
    assert str(caught.value).splitlines() == [
        "unknown ranker 'topr': did you mean 'toprank'? Known: bubblerank, cascade-klucb, "
        "batchrank, toprank, baseline",
        "unknown ranker 'basline': did you mean 'baseline'? Known: bubblerank, cascade-klucb, "
        "batchrank, toprank, baseline",
    ]
    many = Simulation(RankerConfig(positions=6, horizon=9), 0, 5, (1,))
    with pytest.raises(UsageError, match="got 6 positions for 5 items"):
        settings(tmp_path, simulation=many).check()
    settings(tmp_path).check()
