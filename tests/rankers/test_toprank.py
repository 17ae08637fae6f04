import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblerank.click_models import CascadeModel
from bubblerank.closed_loop import Experiment, advance_compiled, begin
from bubblerank.config import RankerConfig
from bubblerank.rankers import toprank
from tests.rankers.twins import (
    assert_twins,
    easy_experiment,
    experiments,
    first_lists,
    last_list,
    rows,
)


@settings(max_examples=25)
@given(experiments("toprank"), st.lists(st.integers(0, 200), max_size=3))
def test_the_kernel_equals_the_reference_step_for_step(experiment, splits):
    assert_twins(experiment, 200, splits)


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
def test_the_kernel_equals_the_reference_over_a_longer_run(model):
    assert_twins(easy_experiment("toprank", model, horizon=1000), 2000, [1, 700])


def blocks_by_hand(below):
    """The paper's P_t1, P_t2, ...: min over G of the items left."""
    left, found = set(range(len(below))), []
    while left:
        best = {j for j in left if not any(below[j][i] for i in left)}
        found.append(best or set(left))
        left -= found[-1]
    return found


@pytest.mark.parametrize("model", ["CM", "PBM"])
def test_statistics_and_relation_are_those_of_a_direct_evaluation_of_the_history(model):
    steps, items, horizon = 1500, 6, 100
    experiment = easy_experiment("toprank", model, horizon=horizon)
    advance = advance_compiled(experiment, begin(experiment), steps, displays=True)
    c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
    differences = np.zeros((items, items))
    absolute = np.zeros((items, items))
    below = np.zeros((items, items), dtype=bool)
    for displayed, clicked in rows(advance):
        blocks = blocks_by_hand(below)
        order = [next(n for n, block in enumerate(blocks) if item in block) for item in displayed]
        assert order == sorted(order)
        feedback = np.zeros(items)
        feedback[list(displayed)] = clicked
        for block in blocks:
            for i in block:
                for j in block:
                    differences[i, j] += feedback[i] - feedback[j]
                    absolute[i, j] += abs(feedback[i] - feedback[j])
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = np.sqrt(2 * absolute * np.log(c * horizon * np.sqrt(absolute)))
        below |= ((absolute > 0) & (differences >= radius)).T
    state = advance.progress.state
    assert np.array_equal(state.wins, differences)
    assert np.array_equal(state.trials, absolute)
    assert np.array_equal(state.below, below)
    assert below.any()


def test_blocks_are_the_items_that_nobody_left_is_known_to_beat():
    below = np.zeros((5, 5), dtype=bool)
    below[0, 3] = below[4, 0] = below[2, 3] = True
    zeros = np.zeros((5, 5), dtype=np.int64)
    assert toprank.blocks(toprank.TopState(zeros, zeros, below, 0)) == [[1, 3], [0, 2], [4]]


def test_a_cycle_of_the_relation_makes_one_block():
    below = np.zeros((4, 4), dtype=bool)
    below[0, 1] = below[1, 2] = below[2, 0] = True
    zeros = np.zeros((4, 4), dtype=np.int64)
    state = toprank.TopState(zeros, zeros, below, 0)
    assert toprank.blocks(state) == [[3], [0, 1, 2]]


def test_a_pair_is_settled_exactly_at_the_bound():
    level = math.log(toprank.CONFIDENCE * 1000)
    least = next(n for n in range(1, 100) if toprank.is_settled(n, n, level))
    assert least >= 2 * math.log(toprank.CONFIDENCE * 1000 * math.sqrt(least)) > least - 1
    assert not toprank.is_settled(-least, least, level)
    assert not toprank.is_settled(0, 0, level)
    assert pytest.approx(3.3436, abs=1e-4) == toprank.CONFIDENCE


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
def test_it_finds_the_best_list_of_an_easy_problem(model):
    assert last_list(easy_experiment("toprank", model), 20_000) == (5, 4, 3, 2)


def test_the_first_list_is_uniform():
    """Chi-square over the 24 lists of 4 items; a right ranker fails with probability 1e-6."""
    stats = pytest.importorskip("scipy.stats")
    config = RankerConfig(horizon=100)
    experiment = Experiment("toprank", "q", CascadeModel((0.5,) * 4), config)
    seen = Counter(first_lists(experiment, 2400))
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6


def test_it_needs_a_horizon():
    with pytest.raises(ValueError, match="toprank needs a horizon"):
        toprank.start(3, RankerConfig())


@pytest.mark.parametrize("numbers", [[], [1, 3, 1], [1, 2, 1, 4, 1, 1], [-1, 2, 0]])
def test_integers_that_make_no_state_are_refused(numbers):
    with pytest.raises(ValueError, match="no toprank state"):
        toprank.unpack(numbers, RankerConfig(horizon=10))
