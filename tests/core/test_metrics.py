"""Metrics: the exact figures of the hand-made problem, definitions restated, exact sums."""

import dataclasses
import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblerank import metrics
from bubblerank.click_models import CascadeModel, DependentClickModel
from bubblerank.closed_loop import advance_compiled, advance_reference, begin
from bubblerank.kernels import world as compiled
from bubblerank.metrics import Scorecard, inversions, log_spaced, make_yardstick
from tests.core import worlds

FIGURES = {
    "CM": (0.011175, 1.4631),
    "DCM": (0.029347, 3.3824),
    "PBM": (0.239224, 23.2966),
}
by_model = pytest.mark.parametrize("name", FIGURES)


def reward_by_definition(name, items, top=5):
    """r at the top positions, from the formulas of the paper and the hand-made parameters."""
    alpha = [worlds.ATTRACTION[item] for item in items][:top]
    if name == "PBM":
        return sum((k**-0.7) * a for k, a in enumerate(alpha, start=1))
    v = [1.0 if name == "CM" else 0.95 - 0.05 * k for k in range(1, top + 1)]
    return 1 - math.prod(1 - vk * a for vk, a in zip(v, alpha, strict=True))


BEST = sorted(range(10), key=lambda item: worlds.PRODUCTION[item])


def regret_by_definition(name, items):
    return reward_by_definition(name, BEST) - reward_by_definition(name, items)


def assert_metrics_equal_definitions():
    """The check that the metrics pass and no misreading of them does."""
    for name, (regret, _) in FIGURES.items():
        yardstick = make_yardstick(worlds.MODELS[name], 10, 5)
        assert yardstick.initial_inversions == 11
        assert yardstick.regret(range(10)) == pytest.approx(regret, abs=5e-7)
        assert yardstick.ndcg(range(10)) == pytest.approx(0.823444, abs=5e-7)
        assert yardstick.regret(BEST) == 0.0
        assert yardstick.ndcg(BEST) == 1.0
        assert [yardstick.violates(v) for v in (0, 11, 16, 17, 45)] == [False] * 3 + [True] * 2
    odd = make_yardstick(CascadeModel((0.1, 0.2, 0.3)), 3, 5)
    assert [odd.violates(v) for v in (3, 4, 5)] == [False, False, True]
    ties = make_yardstick(CascadeModel((0.4, 0.4, 0.1, 0.4)), 4, 4)
    assert ties.initial_inversions == 1


def test_the_exact_figures_of_the_hand_made_problem():
    assert_metrics_equal_definitions()


def exchange_patterns(parity):
    """All lists that one step of this parity can show around R_0, equally likely."""
    uppers = range(parity, 9, 2)
    for pattern in itertools.product([False, True], repeat=len(uppers)):
        items = list(range(10))
        for exchanged, upper in zip(pattern, uppers, strict=True):
            if exchanged:
                items[upper], items[upper + 1] = items[upper + 1], items[upper]
        yield items


def pattern_regrets(name, parity):
    return np.array([regret_by_definition(name, items) for items in exchange_patterns(parity)])


@by_model
def test_expected_regret_of_the_first_hundred_steps_is_its_closed_form(name):
    by_parity = [pattern_regrets(name, parity) for parity in (0, 1)]
    closed = sum(50 * regrets.mean() for regrets in by_parity)
    assert closed == pytest.approx(FIGURES[name][1], abs=5e-5)


@by_model
def test_mean_regret_of_many_runs_meets_the_closed_form(name):
    """Steps are independent, so the error is known; 5 of them fail with probability < 1e-6."""
    runs = 1_500
    total = 0.0
    for run in range(runs):
        experiment = worlds.hand_made(name, horizon=5_000_000, run=run)
        row = advance_compiled(experiment, begin(experiment), 100, [100]).checkpoints[0]
        assert row.violations == 0
        total += row.regret
    by_parity = [pattern_regrets(name, parity) for parity in (0, 1)]
    expected = sum(50 * regrets.mean() for regrets in by_parity)
    error = math.sqrt(sum(50 * regrets.var() for regrets in by_parity) / runs)
    assert abs(total / runs - expected) < 5 * error


def test_no_exchange_pattern_around_the_production_list_violates():
    yardstick = make_yardstick(worlds.MODELS["CM"], 10, 5)
    for parity in (0, 1):
        for items in exchange_patterns(parity):
            assert not yardstick.violates(inversions(worlds.ATTRACTION, items))


def test_a_uniformly_random_list_violates_with_probability_8544():
    """Exactly, from the numbers of permutations of 10 by inversions (Mahonian numbers)."""
    counts = [1]
    for size in range(2, 11):
        grown = [0] * (len(counts) + size - 1)
        for inverted, count in enumerate(counts):
            for more in range(size):
                grown[inverted + more] += count
        counts = grown
    yardstick = make_yardstick(worlds.MODELS["CM"], 10, 5)
    share = sum(n for v, n in enumerate(counts) if yardstick.violates(v)) / math.factorial(10)
    assert share == pytest.approx(0.8544, abs=5e-5)


def test_random_lists_are_found_to_violate_that_often():
    rng, lists = random.Random(5), 20_000
    yardstick = make_yardstick(worlds.MODELS["CM"], 10, 5)
    violating = sum(
        yardstick.violates(inversions(worlds.ATTRACTION, rng.sample(range(10), 10)))
        for _ in range(lists)
    )
    assert abs(violating / lists - 0.8544) < 5 * math.sqrt(0.8544 * 0.1456 / lists)


@given(st.lists(worlds.ATTRACTIONS, min_size=1, max_size=12), st.randoms())
def test_inversions_are_the_pairs_in_the_wrong_order(attraction, rng):
    items = rng.sample(range(len(attraction)), len(attraction))
    pairs = itertools.combinations([attraction[item] for item in items], 2)
    assert inversions(attraction, items) == sum(1 for upper, lower in pairs if upper < lower)


@given(st.data())
@settings(max_examples=60)
def test_compiled_metrics_of_a_list_equal_the_readable_ones_to_the_bit(data):
    shown = data.draw(st.integers(1, 20))
    items = shown + data.draw(st.integers(0, 10))
    model = data.draw(worlds.click_models(items, shown))
    yardstick = make_yardstick(model, shown, data.draw(st.integers(1, 22)))
    displayed = data.draw(st.permutations(range(items)))[:shown]
    world, array = compiled.make_world(yardstick, 1), np.array(displayed)
    assert compiled.reward_of(world, array) == model.reward(displayed, yardstick.top)
    assert compiled.ndcg_of(world, array) == yardstick.ndcg(displayed)
    assert compiled.inversions_of(world, array) == inversions(model.attraction, displayed)


@pytest.mark.parametrize("path", [advance_reference, advance_compiled])
@by_model
def test_sums_equal_plain_summation_over_the_displays(name, path):
    steps = 700
    experiment = worlds.hand_made(name, delta=0.6)
    got = path(experiment, begin(experiment), steps, [1, 50, steps], displays=True)
    shown = got.displays.displayed.tolist()
    alpha = worlds.ATTRACTION
    discounts = [math.log2(k + 1) for k in range(1, 6)]

    def dcg(items):
        return sum(alpha[item] / d for item, d in zip(items, discounts, strict=False))

    assert [row.step for row in got.checkpoints] == [1, 50, steps]
    for row in got.checkpoints:
        lists = shown[: row.step]
        near = {"rel": 1e-9, "abs": 1e-9}
        regret = math.fsum(regret_by_definition(name, items) for items in lists)
        reward = math.fsum(reward_by_definition(name, items) for items in lists)
        ndcg = [dcg(items) / dcg(BEST) for items in lists]
        inverted = [
            sum(1 for i, j in itertools.combinations(items, 2) if alpha[i] < alpha[j])
            for items in lists
        ]
        assert row.regret == pytest.approx(regret, **near)
        assert row.reward == pytest.approx(reward, **near)
        assert row.mean_ndcg == pytest.approx(math.fsum(ndcg) / row.step, **near)
        assert row.ndcg == pytest.approx(ndcg[-1], **near)
        assert row.inversions == inverted[-1]
        assert row.violations == sum(v > 11 + 5 for v in inverted)
        assert row.clicks == int(got.displays.clicked[: row.step].sum())


@given(st.lists(st.permutations(range(4)), min_size=1, max_size=30), st.randoms())
def test_the_order_in_which_steps_are_added_changes_no_digit(lists, rng):
    yardstick = make_yardstick(CascadeModel((0.3, 0.1, 0.7, 0.2)), 4, 3)
    one, other = Scorecard(), Scorecard()
    for items in lists:
        one.add(yardstick, items, 1)
    for items in rng.sample(lists, len(lists)):
        other.add(yardstick, items, 1)
    assert one == other


def test_whole_list_regret_of_a_cascade_over_all_items_is_nothing():
    """1 - prod(1 - alpha) is the same in every order: a reason to measure at the top 5."""
    experiment = dataclasses.replace(worlds.hand_made("CM", horizon=2), top=10)
    steps = 20_000
    row = advance_compiled(experiment, begin(experiment), steps, [steps]).checkpoints[0]
    assert abs(row.regret) < steps * 2**-50
    assert row.mean_ndcg < 1.0


def test_regret_below_nothing_is_summed_alike_on_both_paths():
    """Where stop probabilities rise with the position, the list by attraction is not the best."""
    model = DependentClickModel((0.2, 0.9, 0.5), (0.01, 0.5, 1.0))
    experiment = worlds.Experiment("bubblerank", "rising", model, worlds.RankerConfig(delta=0.9))
    cards = [
        path(experiment, begin(experiment), 500).progress.card
        for path in (advance_reference, advance_compiled)
    ]
    assert cards[0] == cards[1]
    assert cards[0].regret < 0


def test_nobody_attracted_is_no_loss():
    yardstick = make_yardstick(CascadeModel((0.0, 0.0)), 2, 5)
    assert yardstick.ndcg((1, 0)) == 1.0
    assert yardstick.regret((1, 0)) == 0.0


@given(st.integers(1, 10**12), st.integers(1, 300))
def test_checkpoints_ascend_from_one_to_the_last_step(steps, count):
    got = log_spaced(steps, count)
    assert got == sorted(set(got))
    assert len(got) <= count
    assert got[-1] == steps
    if count > 1:
        assert got[0] == 1


def test_checkpoints_are_evenly_spaced_in_the_logarithm():
    assert log_spaced(10**6, 7) == [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]


@pytest.mark.parametrize(
    "steps, count, message", [(0, 5, "steps must be at least 1"), (5, 0, "checkpoints must be")]
)
def test_no_steps_or_no_checkpoints_are_refused(steps, count, message):
    with pytest.raises(ValueError, match=message):
        log_spaced(steps, count)


def test_no_top_is_refused():
    with pytest.raises(ValueError, match="top must be at least 1, got 0"):
        metrics.make_yardstick(worlds.MODELS["CM"], 10, 0)
