import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblerank.click_models import CascadeModel
from bubblerank.closed_loop import Experiment, advance_compiled, begin
from bubblerank.coins import Coins
from bubblerank.config import RankerConfig
from bubblerank.rankers import batchrank
from bubblerank.rankers.batchrank import Batch, new_batch, stage_length, update
from tests.rankers.twins import (
    assert_twins,
    easy_experiment,
    experiments,
    first_lists,
    last_list,
    rows,
)

HORIZON = 1000


@settings(max_examples=25)
@given(experiments("batchrank"), st.lists(st.integers(0, 300), max_size=3))
def test_the_kernel_equals_the_reference_step_for_step(experiment, splits):
    assert_twins(experiment, 300, splits)


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
@pytest.mark.parametrize("shown", [2, 4, 6])
def test_the_kernel_equals_the_reference_over_stages_and_splits(model, shown):
    assert_twins(easy_experiment("batchrank", model, shown, horizon=50), 1500, [1, 64, 700])


def test_stage_lengths_are_those_of_the_paper():
    log_n = math.log(10**6)
    assert [stage_length(stage, 10**6) for stage in range(4)] == [
        math.ceil(16 * log_n), math.ceil(64 * log_n), math.ceil(256 * log_n),
        math.ceil(1024 * log_n),
    ]  # fmt: skip
    assert stage_length(0, 10**6) == 222
    assert stage_length(0, 1) == stage_length(0, 2) == 12


def finished(length, clicks):
    """A batch at the end of stage 0, each item with this share of clicks."""
    n = stage_length(0, HORIZON)
    counted = tuple(round(share * n) for share in clicks)
    return Batch(length, 0, tuple(range(len(clicks))), (n,) * len(clicks), counted)


def hand_bounds(share):
    """KL bounds by scanning q in steps of 1e-5."""
    n = stage_length(0, HORIZON)
    p = round(share * n) / n
    budget = math.log(HORIZON) + 3 * math.log(math.log(HORIZON))

    def cost(q):
        own = p * math.log(p / q) if p else 0.0
        return n * (own + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0))

    inside = [k / 1e5 for k in range(1, 100_000) if cost(k / 1e5) <= budget]
    return min(inside), max(inside)


def test_a_batch_is_split_at_the_lowest_position_where_the_bounds_part():
    clicks = [0.02, 0.95, 0.48, 0.45]
    bounds = [hand_bounds(share) for share in clicks]
    assert bounds[1][0] > max(bounds[2][1], bounds[3][1]) and bounds[2][0] > bounds[0][1]
    assert update(finished(4, clicks), HORIZON) == (
        new_batch(3, 0, (1, 2, 3)),
        new_batch(1, 0, (0,)),
    )


def test_a_split_may_leave_more_items_than_positions_below():
    clicks = [0.4, 0.9, 0.45, 0.38]
    assert update(finished(2, clicks), HORIZON) == (
        new_batch(1, 0, (1,)),
        new_batch(1, 0, (0, 2, 3)),
    )


def test_without_a_split_items_below_the_last_lower_bound_go_and_the_stage_grows():
    clicks = [0.05, 0.5, 0.52, 0.42]
    bounds = [hand_bounds(share) for share in clicks]
    needed = sorted((low for low, _ in bounds), reverse=True)[1]
    assert [high >= needed for _, high in bounds] == [False, True, True, True]
    assert update(finished(2, clicks), HORIZON) == (new_batch(2, 1, (1, 2, 3)),)


def test_a_stage_goes_on_until_every_item_was_counted_often_enough():
    batch = finished(2, [0.9, 0.1])
    batch = Batch(2, 0, batch.items, (batch.shown[0], batch.shown[0] - 1), batch.clicks)
    assert update(batch, HORIZON) == (batch,)


def test_the_least_shown_items_are_shown_and_only_they_are_counted():
    batch = Batch(2, 0, (0, 1, 2), (4, 5, 5), (0, 0, 0))
    for step in range(1, 30):
        shown = batchrank.arrange(batch, 3, Coins(9, step))
        assert 0 in shown and len(set(shown)) == 2
    assert batchrank.collect(batch, {0: True, 2: True}) == Batch(
        2, 0, (0, 1, 2), (5, 5, 5), (1, 0, 0)
    )


def test_every_item_is_shown_equally_often_within_a_stage():
    experiment = easy_experiment("batchrank", "PBM", 4, horizon=10**6)
    shown = rows(advance_compiled(experiment, begin(experiment), 300, displays=True))
    counted = Counter(item for displayed, _ in shown for item in displayed)
    assert sum(counted.values()) == 1200
    assert max(counted.values()) - min(counted.values()) <= 20


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
def test_it_finds_the_best_list_of_an_easy_problem(model):
    experiment = easy_experiment("batchrank", model, horizon=200)
    assert last_list(experiment, 400_000) == (5, 4, 3, 2)


@pytest.mark.parametrize("shown", [4, 3])
def test_the_first_list_is_uniform(shown):
    """Chi-square over the 24 lists; a right ranker fails with probability 1e-6."""
    stats = pytest.importorskip("scipy.stats")
    config = RankerConfig(positions=shown, horizon=100)
    experiment = Experiment("batchrank", "q", CascadeModel((0.5,) * 4), config)
    seen = Counter(first_lists(experiment, 2400))
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6


def test_it_needs_a_horizon():
    with pytest.raises(ValueError, match="batchrank needs a horizon"):
        batchrank.start(3, RankerConfig())


@pytest.mark.parametrize(
    "numbers", [[], [1, 2], [0, 2, 1, 1, 0, 1, 0, 5, 0], [0, 2, 0, 9], [0, -2, 0]]
)
def test_integers_that_make_no_state_are_refused(numbers):
    with pytest.raises(ValueError, match="no batchrank state"):
        batchrank.unpack(numbers, RankerConfig(horizon=10))
