import math
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bubblerank import kl
from bubblerank.click_models import CascadeModel
from bubblerank.closed_loop import Experiment, advance_compiled, begin
from bubblerank.coins import Coins, stream_key
from bubblerank.config import RankerConfig
from bubblerank.kernels import kl as compiled_kl
from bubblerank.rankers import cascade_klucb
from bubblerank.rankers.policy import Choice
from tests.rankers.twins import (
    assert_twins,
    easy_experiment,
    experiments,
    first_lists,
    last_list,
    rows,
)


@st.composite
def counts(draw):
    observations = draw(st.one_of(st.integers(1, 60), st.integers(1, 10**10)))
    clicks = draw(st.one_of(st.integers(0, observations), st.sampled_from([0, 1, observations])))
    return min(clicks, observations), observations


@settings(max_examples=25)
@given(experiments("cascade-klucb"), st.lists(st.integers(0, 150), max_size=3))
def test_the_kernel_equals_the_reference_step_for_step(experiment, splits):
    assert_twins(experiment, 150, splits)


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
def test_the_kernel_equals_the_reference_over_a_longer_run(model):
    assert_twins(easy_experiment("cascade-klucb", model), 3000, [1, 2, 1000])


@pytest.mark.parametrize("attraction", [(0.0,) * 6, (1.0,) * 6, (0.3,) * 6])
def test_the_kernel_equals_the_reference_where_all_items_are_alike(attraction):
    config = RankerConfig(positions=3)
    assert_twins(Experiment("cascade-klucb", "q", CascadeModel(attraction), config), 800)


@settings(max_examples=300)
@given(counts(), st.integers(3, 10**12), st.floats(0.0, 1.0))
@example((0, 1), 3, 0.0)
@example((1, 2), 10**12, 0.9)
@example((0, 1), 10**12, 1.0 - 2.0**-52)
@example((10**9, 10**10), 3, 1.0 - 2.0**-52)
def test_newton_from_any_guess_gives_the_grid_point_of_bisection(pair, step, guess):
    clicks, observations = pair
    budget = kl.exploration_budget(step)
    assert compiled_kl.exploration_budget(step) == budget
    upper = kl.upper_bound(clicks, observations, budget)
    assert compiled_kl.upper_bound(clicks, observations, budget, guess) == upper
    lower = kl.lower_bound(clicks, observations, budget)
    assert compiled_kl.lower_bound(clicks, observations, budget) == lower
    assert lower <= (clicks << kl.GRID_BITS) // observations + 1 and lower <= upper + 1


@settings(max_examples=100)
@given(st.integers(1, 10**6), st.floats(0.0, 1.0), st.integers(3, 10**7))
def test_the_bounds_are_the_roots_that_scipy_finds(observations, share, step):
    optimize = pytest.importorskip("scipy.optimize")
    special = pytest.importorskip("scipy.special")
    clicks = round(share * observations)
    budget = math.log(step) + 3 * math.log(math.log(step))
    mean = clicks / observations

    def excess(q):
        own = special.rel_entr(mean, q) + special.rel_entr(1 - mean, 1 - q)
        return observations * own - budget

    below_one = 1 - 1e-15
    upper = optimize.brentq(excess, mean, below_one, xtol=1e-15) if clicks < observations else 1.0
    lower = optimize.brentq(excess, 1e-300, mean, xtol=1e-15) if clicks else 0.0
    assert abs(kl.upper_bound(clicks, observations, budget) / kl.ONE - upper) < 3e-11
    assert abs(kl.lower_bound(clicks, observations, budget) / kl.ONE - lower) < 3e-11


def test_a_budget_of_zero_gives_the_mean_and_the_first_two_steps_have_none():
    assert [kl.exploration_budget(step) for step in (1, 2)] == [0.0, 0.0]
    assert kl.exploration_budget(3) == pytest.approx(math.log(3) + 3 * math.log(math.log(3)))
    for bound in (kl.upper_bound, kl.lower_bound, compiled_kl.lower_bound):
        assert bound(1, 4, 0.0) == kl.ONE // 4
    assert compiled_kl.upper_bound(1, 4, 0.0, 0.5) == kl.ONE // 4


def test_an_item_clicked_whenever_observed_is_bounded_by_one_and_comes_after_unseen_items():
    state = cascade_klucb.CascadeState((5, 0, 2), (5, 0, 9), 14)
    assert cascade_klucb.upper_bounds(state)[0] == kl.ONE
    shown = cascade_klucb.decide(state, RankerConfig(), Coins(7, 15)).displayed
    assert shown == (1, 0, 2)


def test_only_items_down_to_the_first_click_are_observed_and_only_that_click_counts():
    state = cascade_klucb.start(4, RankerConfig())
    choice = Choice((2, 0, 3, 1))
    state = cascade_klucb.observe(
        state, RankerConfig(), choice, [False, True, True, False], Coins(1, 1)
    )
    assert (state.clicks, state.observations) == ((1, 0, 0, 0), (1, 0, 1, 0))
    state = cascade_klucb.observe(state, RankerConfig(), choice, [False] * 4, Coins(1, 2))
    assert (state.clicks, state.observations) == ((1, 0, 0, 0), (2, 1, 2, 1))


def test_items_that_look_alike_keep_the_order_of_the_run_for_good():
    model = CascadeModel((0.0,) * 5)
    experiment = Experiment("cascade-klucb", "q", model, RankerConfig())
    shown = rows(advance_compiled(experiment, begin(experiment), 300, displays=True))
    assert len({displayed for displayed, _ in shown}) == 1


@pytest.mark.parametrize("model", ["CM", "DCM"])
def test_it_finds_the_best_list_of_an_easy_problem(model):
    assert last_list(easy_experiment("cascade-klucb", model), 20_000) == (5, 4, 3, 2)


def test_the_first_list_is_uniform_over_runs():
    """Chi-square over the 24 lists of 4 items; a right ranker fails with probability 1e-6."""
    stats = pytest.importorskip("scipy.stats")
    experiment = Experiment("cascade-klucb", "q", CascadeModel((0.5,) * 4), RankerConfig())
    seen = Counter(first_lists(experiment, 2400))
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6


@pytest.mark.parametrize("numbers", [[], [1], [1, 2, 3], [1, 1, -1, 0], [-1, 1, 0, 0]])
def test_integers_that_make_no_state_are_refused(numbers):
    with pytest.raises(ValueError, match="no cascade-klucb state"):
        cascade_klucb.unpack(numbers, RankerConfig())


def test_priorities_belong_to_the_run_and_not_to_the_step():
    key = stream_key(1, "q", 2)
    state = cascade_klucb.start(8, RankerConfig())
    lists = {
        cascade_klucb.decide(state, RankerConfig(), Coins(key, step)).displayed
        for step in range(1, 20)
    }
    assert len(lists) == 1
