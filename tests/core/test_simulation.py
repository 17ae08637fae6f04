"""simulate: one table whatever the path; horizons; memory that does not grow with steps."""

import doctest
import importlib
import math
import pkgutil
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import bubblerank
import schemas
from bubblerank import Problem, simulate
from bubblerank.closed_loop import advance_compiled, advance_reference, begin
from bubblerank.metrics import log_spaced
from bubblerank.rankers import RANKER_NAMES
from tests.core import worlds

ITEMS = tuple(f"item {place}" for place in range(10))
PROBLEMS = [
    Problem("hand", ITEMS, "CM", worlds.ATTRACTION),
    Problem("hand", ITEMS, "DCM", worlds.ATTRACTION, abandonment=worlds.ABANDONMENT),
    Problem("hand", ITEMS, "PBM", worlds.ATTRACTION, examination=worlds.EXAMINATION[:6]),
]


@pytest.mark.parametrize("ranker", RANKER_NAMES)
@pytest.mark.parametrize("settings", [{}, {"positions": 3, "top": 2}, {"horizon": 40, "runs": 2}])
def test_the_compiled_table_is_the_readable_table(ranker, settings):
    tables = [
        simulate(PROBLEMS, [ranker], steps=200, seed=3, checkpoints=7, path=path, **settings)
        for path in ("compiled", "reference")
    ]
    assert tables[0].equals(tables[1])
    assert tables[0].num_rows == len(PROBLEMS) * settings.get("runs", 1) * len(log_spaced(200, 7))


@pytest.mark.parametrize("settings", [{"doubling": True}, {"delta": 0.5}, {"freeze_decided": True}])
def test_the_tables_are_equal_under_every_setting_of_bubblerank(settings):
    tables = [
        simulate(PROBLEMS, steps=300, checkpoints=9, path=path, **settings)
        for path in ("compiled", "reference")
    ]
    assert tables[0].equals(tables[1])


def test_a_row_is_for_each_ranker_problem_run_and_checkpoint():
    rankers = ["bubblerank", "baseline"]
    table = simulate(PROBLEMS, rankers, steps=1000, runs=3, checkpoints=[10, 1000])
    assert table.schema == schemas.arrow_schema("metric")
    keys = list(zip(*(table[name].to_pylist() for name in KEYS), strict=True))
    assert len(set(keys)) == len(keys) == 3 * 2 * 3 * 2
    assert set(table["step"].to_pylist()) == {10, 1000}


KEYS = ("ranker", "click_model", "query", "run", "step")


def test_steps_given_twice_or_out_of_order_are_checkpoints_once():
    for path in ("compiled", "reference"):
        table = simulate(PROBLEMS[:1], steps=50, checkpoints=[30, 10, 10, 50, 30], path=path)
        assert table["step"].to_pylist() == [10, 30, 50]


def test_every_learner_is_independent_of_those_beside_it():
    together = simulate(PROBLEMS, ["bubblerank", "baseline"], steps=500, runs=2, checkpoints=4)
    alone = [
        simulate([problem], [ranker], steps=500, runs=2, checkpoints=4)
        for problem in PROBLEMS
        for ranker in ("bubblerank", "baseline")
    ]
    assert together.equals(pa.concat_tables(alone).combine_chunks())


def test_another_seed_gives_other_users():
    one, other = (simulate(PROBLEMS, steps=500, seed=seed, checkpoints=1) for seed in (0, 1))
    assert one["clicks"] != other["clicks"]


def test_regret_of_the_baseline_is_its_figure_a_step():
    table = simulate(PROBLEMS[:1], ["baseline"], steps=1000, checkpoints=[1000])
    assert table["regret"][0].as_py() == pytest.approx(11.175, abs=5e-4)
    assert table["violations"][0].as_py() == 0


@pytest.mark.parametrize("path", [advance_reference, advance_compiled])
def test_a_given_horizon_stays_past_its_end(path):
    experiment = worlds.steep("PBM", horizon=20)
    state = path(experiment, begin(experiment), 300).progress.state
    assert state.horizon == 20
    assert state.base != tuple(range(6)), "the base list is not taken back either"
    log = experiment.config.log_inverse_delta(state.horizon)
    assert log == pytest.approx(4 * math.log(20))


@pytest.mark.parametrize("path", [advance_reference, advance_compiled])
def test_doubling_takes_the_base_list_back_at_the_step_after_the_horizon(path):
    experiment = worlds.steep("PBM", first_horizon=512)
    at_horizon = path(experiment, begin(experiment), 512, displays=True)
    assert at_horizon.progress.state.horizon == 512
    assert at_horizon.progress.state.base != tuple(range(6))
    after = path(experiment, at_horizon.progress, 1, displays=True)
    np.testing.assert_array_equal(after.displays.base[0], np.arange(6))
    assert after.progress.state.horizon == 1024
    kept = after.progress.state.trials - at_horizon.progress.state.trials
    assert ((kept == 0) | (kept == 1)).all(), "statistics go on, they do not restart"
    later = path(experiment, after.progress, 30, displays=True)
    assert later.progress.state.base != tuple(range(6)), "what is decided is promoted again"


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"positions": 11}, "positions"),
        ({"rankers": ["bubble"]}, "ranker must be one of .*, got 'bubble'"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"checkpoints": 0}, "checkpoints must be at least 1, got 0"),
        ({"top": 0}, "top must be at least 1, got 0"),
        ({"path": "fast"}, "path must be"),
        ({"runs": 0}, "runs must be at least 1, got 0"),
    ],
)
def test_bad_settings_are_refused_with_their_bounds(bad, message):
    with pytest.raises(ValueError, match=message):
        simulate(PROBLEMS[:1], **{"steps": 10, **bad})


def test_more_positions_than_the_click_model_knows_are_refused():
    with pytest.raises(ValueError, match="PBM has parameters for 6 positions, got 8"):
        simulate(PROBLEMS[2:], steps=10, positions=8)


MEASURE = """
import resource
from bubblerank import Problem, simulate
problem = Problem("m", [str(i) for i in range(10)], "CM", [.1, .3, .2, .5, .1, .4, .2, .3, .1, .6])
def peak(steps):
    simulate([problem], steps=steps, checkpoints=10)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
peak(100_000)
print(-peak(100_000) + peak(3_000_000))
"""


def test_memory_of_a_process_does_not_grow_with_steps():
    """Thirty times the steps, and less than a byte for each of them."""
    grown = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    assert int(grown.stdout) < 1024


def test_memory_of_the_readable_path_does_not_grow_with_steps():
    experiment = worlds.hand_made("CM", horizon=100)
    peaks = []
    for steps in (200, 2_000):
        tracemalloc.start()
        advance_reference(experiment, begin(experiment), steps)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2_000


def modules_with_examples():
    for found in pkgutil.walk_packages(bubblerank.__path__, "bubblerank."):
        if not found.name.startswith("bubblerank.kernels"):
            yield found.name


def test_the_examples_in_docstrings_are_true():
    attempted = 0
    for name in modules_with_examples():
        result = doctest.testmod(importlib.import_module(name))
        assert result.failed == 0, name
        attempted += result.attempted
    assert attempted >= 7
