"""Benchmarks: what they compare with does the same work, and each can be found and named."""

import subprocess
import sys

import pytest

from benchmarks import bisection
from benchmarks.__main__ import as_table, find_benchmarks
from bubblerank.closed_loop import advance_reference, begin
from tests.core import worlds


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
@pytest.mark.parametrize("positions", [None, 4])
def test_the_compiled_bisection_learns_what_cascade_klucb_learns(model, positions):
    experiment = worlds.hand_made(model, "cascade-klucb", horizon=400, positions=positions)
    state = advance_reference(experiment, begin(experiment), 300).progress.state
    clicks, observations = bisection.learn(experiment, 300)
    assert tuple(clicks) == state.clicks
    assert tuple(observations) == state.observations


def test_modules_that_run_are_found():
    found = find_benchmarks()
    assert "kernels" in found
    assert "bisection" not in found


def test_rows_become_a_table():
    table = as_table("title", [{"what": "a", "much": 1234.5}, {"what": "b", "much": 0.25}])
    assert [column.header for column in table.columns] == ["what", "much"]
    assert list(table.columns[1].cells) == ["1,234", "0.2"]


def test_an_unknown_benchmark_is_refused_with_the_known_ones():
    got = subprocess.run(
        [sys.executable, "-m", "benchmarks", "kernel"], capture_output=True, text=True
    )
    assert got.returncode == 2
    assert "no benchmark kernel: there are" in got.stderr
    assert "kernels" in got.stderr
