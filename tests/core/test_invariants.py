"""What never fails on any trajectory of BubbleRank, and misreadings that these checks reject."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubblerank import click_models, metrics
from bubblerank.closed_loop import advance_compiled, advance_reference, begin
from bubblerank.rankers import bubble
from tests.core import worlds
from tests.core.mutants import Mutant
from tests.core.test_bubble import (
    assert_equals_naive,
    assert_equals_naive_from_anywhere,
    random_start,
)
from tests.core.test_click_models import assert_models_equal_enumeration
from tests.core.test_metrics import assert_metrics_equal_definitions


def places_of(lists):
    """For each row, the position of each item."""
    return np.argsort(lists, axis=1, kind="stable")


@given(worlds.experiments(), st.integers(1, 400))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_a_displayed_item_is_at_most_one_place_from_its_place_in_the_base_list(experiment, steps):
    got = advance_compiled(experiment, begin(experiment), steps, displays=True)
    shown = experiment.shown
    base_places = places_of(got.displays.base)
    rows = np.arange(steps)[:, None]
    moves = base_places[rows, got.displays.displayed] - np.arange(shown)
    moves[:, -1] = np.minimum(moves[:, -1], 1)
    assert np.abs(moves).max() <= 1
    assert (np.sort(got.displays.base, axis=1) == np.arange(experiment.items)).all()


@given(worlds.experiments(), st.integers(1, 400))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_lists_differ_from_the_base_by_exchanges_of_disjoint_neighbours_of_the_parity(
    experiment, steps
):
    got = advance_compiled(experiment, begin(experiment), steps, displays=True)
    shown = experiment.shown
    for place in range(steps):
        step, parity = place + 1, (place + 1) % 2
        expected = got.displays.base[place, :shown].copy()
        displayed = got.displays.displayed[place]
        for upper in range(parity, shown - 1, 2):
            if displayed[upper] != expected[upper]:
                expected[[upper, upper + 1]] = expected[[upper + 1, upper]]
        if experiment.items > shown and (shown - parity) % 2 == 1:
            hidden = got.displays.base[place, shown:]
            assert displayed[-1] in {expected[-1], *hidden}, f"step {step}"
            expected[-1] = displayed[-1]
        np.testing.assert_array_equal(displayed, expected, err_msg=f"step {step}")


@given(worlds.experiments(), st.integers(1, 400))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_s_is_antisymmetric_within_n_and_of_its_parity(experiment, steps):
    state = advance_compiled(experiment, begin(experiment), steps).progress.state
    np.testing.assert_array_equal(state.wins, -state.wins.T)
    np.testing.assert_array_equal(state.trials, state.trials.T)
    assert (np.abs(state.wins) <= state.trials).all()
    assert ((state.wins - state.trials) % 2 == 0).all()
    assert (np.diag(state.trials) == 0).all()


@given(worlds.experiments(), st.integers(1, 60))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_statistics_change_only_by_pairs_of_the_parity_with_one_click(experiment, steps):
    """From the displays alone: s is the sum of c(upper) - c(lower) over all steps."""
    if experiment.items > experiment.shown or experiment.config.freeze_decided:
        return
    got = advance_compiled(experiment, begin(experiment), steps, displays=True)
    wins = np.zeros((experiment.items, experiment.items), dtype=int)
    trials = wins.copy()
    for t in range(1, steps + 1):
        shown, clicked = got.displays.displayed[t - 1], got.displays.clicked[t - 1].astype(int)
        for k in range(1, (experiment.shown - t % 2) // 2 + 1):
            upper, lower = 2 * k - 1 + t % 2 - 1, 2 * k + t % 2 - 1
            difference = clicked[upper] - clicked[lower]
            wins[shown[upper], shown[lower]] += difference
            wins[shown[lower], shown[upper]] -= difference
            trials[shown[upper], shown[lower]] += abs(difference)
            trials[shown[lower], shown[upper]] += abs(difference)
    np.testing.assert_array_equal(got.progress.state.wins, wins)
    np.testing.assert_array_equal(got.progress.state.trials, trials)


@pytest.mark.parametrize("horizon", [2, 5, 100, 10_000])
def test_a_pair_that_always_wins_is_promoted_as_soon_as_arithmetic_allows(horizon):
    """s > 2 sqrt(n log(1/delta)) with s = n is n > 4 log(1/delta); a pair meets every 2 steps."""
    needed = math.floor(4 * 4 * math.log(horizon)) + 1
    model = worlds.CascadeModel((0.0, 1.0, 0.0, 0.0))
    config = worlds.RankerConfig(horizon=horizon)
    experiment = worlds.Experiment("bubblerank", "sure", model, config)
    got = advance_compiled(experiment, begin(experiment), 2 * needed + 40, displays=True)
    changed = np.flatnonzero((got.displays.base != np.arange(4)).any(axis=1))
    assert changed[0] == 2 * needed


@given(worlds.experiments(), st.integers(1, 300))
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_the_base_list_is_the_initial_one_until_a_pair_can_have_enough_observations(
    experiment, steps
):
    got = advance_compiled(experiment, begin(experiment), steps, displays=True)
    config = experiment.config
    log = -math.log(config.delta) if config.delta else 4 * math.log(config.start_horizon)
    needed = math.floor(4 * log) + 1
    assert (got.displays.base[: 2 * needed - 1] == np.arange(experiment.items)).all()


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
def test_at_odd_steps_the_ends_of_ten_positions_never_move(model):
    experiment = worlds.hand_made(model, horizon=2)
    got = advance_compiled(experiment, begin(experiment), 20_000, displays=True)
    odd = slice(0, None, 2)
    for end in (0, 9):
        np.testing.assert_array_equal(got.displays.displayed[odd, end], got.displays.base[odd, end])
    even = slice(1, None, 2)
    assert (got.displays.displayed[even, 0] != got.displays.base[even, 0]).any()
    assert (got.displays.displayed[even, 9] != got.displays.base[even, 9]).any()


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
def test_a_pair_whose_upper_item_is_known_to_be_better_is_never_exchanged(model):
    experiment = worlds.steep(model, delta=0.6)
    log = -math.log(0.6)
    progress, decided = begin(experiment), 0
    for t in range(1, 1200):
        state = progress.state
        got = advance_reference(experiment, progress, 1, displays=True)
        base, displayed = got.displays.base[0], got.displays.displayed[0]
        for upper in range(t % 2, 5, 2):
            above, below = base[upper], base[upper + 1]
            if state.wins[above, below] > 2 * math.sqrt(state.trials[above, below] * log):
                decided += 1
                assert (displayed[upper], displayed[upper + 1]) == (above, below)
        progress = got.progress
    assert decided > 300


def test_open_pairs_are_exchanged_half_of_the_time_and_independently():
    """20,000 steps of each parity without clicks; a share fails with probability < 1e-6 (z = 5)."""
    model = worlds.CascadeModel((0.0,) * 10)
    experiment = worlds.Experiment("bubblerank", "coins", model, worlds.RankerConfig())
    got = advance_compiled(experiment, begin(experiment), 40_000, displays=True)
    assert (got.displays.base == np.arange(10)).all()
    for parity in (0, 1):
        rows = got.displays.displayed[1 - parity :: 2]
        uppers = range(parity, 9, 2)
        exchanged = np.column_stack([rows[:, upper] != upper for upper in uppers]).astype(float)
        bound = 5 * 0.5 / math.sqrt(len(rows))
        assert np.abs(exchanged.mean(axis=0) - 0.5).max() < bound
        together = np.corrcoef(exchanged.T) - np.eye(exchanged.shape[1])
        assert np.abs(together).max() < 5 / math.sqrt(len(rows))


def assert_bubblerank_equals_naive():
    """The check that BubbleRank passes and no misreading of it does."""
    for model in ("CM", "DCM", "PBM"):
        assert_equals_naive(worlds.steep(model, delta=0.6), 150)
    assert_equals_naive(worlds.steep("DCM", delta=0.6, freeze_decided=True), 150)
    assert_equals_naive(worlds.steep("PBM", first_horizon=1), 150)
    assert_equals_naive(worlds.steep("PBM", positions=3, delta=0.6), 200)
    assert_equals_naive(worlds.steep("PBM", positions=2, delta=0.6), 200)
    for number in range(25):
        assert_equals_naive_from_anywhere(*random_start(number), 4)


BUBBLE_MUTANTS = [
    Mutant(
        "only exchanged pairs are updated",
        bubble,
        "learn",
        "if difference == 0 or",
        "if state.base.index(above) < state.base.index(below) or difference == 0 or",
    ),
    Mutant("h is reversed", bubble, "upper_positions", "step % 2", "1 - step % 2"),
    Mutant(
        "parity is that of the step before",
        bubble,
        "learn",
        "step = state.step + 1",
        "step = state.step",
    ),
    Mutant(
        "the pass goes upwards", bubble, "promote", "range(shown - 1)", "reversed(range(shown - 1))"
    ),
    Mutant(
        "the pass is repeated", bubble, "promote", "range(shown - 1)", "[*range(shown - 1)] * shown"
    ),
    Mutant("nothing is promoted", bubble, "promote", "range(shown - 1)", "range(0)"),
    Mutant(
        "hidden items are not promoted", bubble, "promote", "range(shown, len(base))", "range(0)"
    ),
    Mutant(
        "the upper item is asked whether it beats",
        bubble,
        "promote",
        "base[upper + 1], base[upper]):",
        "base[upper], base[upper + 1]):",
    ),
    Mutant(
        "the lower item is tested before the exchange too",
        bubble,
        "decide",
        "if not item_beats(state, config, above, below) and",
        "if not item_beats(state, config, above, below)"
        " and not item_beats(state, config, below, above) and",
    ),
    Mutant(
        "the lower item alone is tested before the exchange",
        bubble,
        "decide",
        "item_beats(state, config, above, below)",
        "item_beats(state, config, below, above)",
    ),
    Mutant(
        "decided pairs go on being exchanged",
        bubble,
        "decide",
        "not item_beats(state, config, above, below) and ",
        "",
    ),
    Mutant("two clicks count", bubble, "learn", "difference == 0 or", "False or"),
    Mutant("a win is counted one way", bubble, "learn", "wins[below, above] -= difference", "pass"),
    Mutant("trials are counted one way", bubble, "learn", "trials[below, above] += 1", "pass"),
    Mutant(
        "clicks are of base positions",
        bubble,
        "learn",
        "displayed = choice.displayed",
        "displayed = state.base[: len(choice.displayed)]",
    ),
    Mutant("freezing is forgotten", bubble, "learn", "config.freeze_decided and decided", "False"),
    Mutant("frozen by default", bubble, "learn", "config.freeze_decided and decided", "decided"),
    Mutant("the radius lacks its 2", bubble, "beats", "> 4.0 *", "> 1.0 *"),
    Mutant("the radius is doubled", bubble, "beats", "> 4.0 *", "> 16.0 *"),
    Mutant("losing decides as well", bubble, "beats", "wins > 0 and ", ""),
    Mutant(
        "doubling keeps the base list",
        bubble,
        "prepare",
        "base=tuple(range(len(state.base))), ",
        "",
    ),
    Mutant(
        "the horizon doubles a step late",
        bubble,
        "prepare",
        "state.step + 1 > horizon",
        "state.step > horizon",
    ),
    Mutant("the horizon never doubles", bubble, "prepare", "config.doubling and", "False and"),
    Mutant(
        "the challenge comes at the other parity", bubble, "challenges_last", "% 2 == 1", "% 2 == 0"
    ),
    Mutant(
        "beaten items challenge",
        bubble,
        "challenger",
        "if not item_beats(state, config, last, item)",
        "if True",
    ),
    Mutant(
        "the challenger always stays hidden",
        bubble,
        "decide",
        "displayed[-1], hidden = hidden, displayed[-1]",
        "pass",
    ),
    Mutant(
        "a hidden item loses nothing", bubble, "learn", "if choice.hidden is not None:", "if False:"
    ),
]

CLICK_MUTANTS = [
    Mutant(
        "DCM examination as printed: (1 - v(i)) alpha(R(i))",
        click_models,
        "ClickModel.examination",
        "looks *= 1.0 - self.stop_probability(position, item)",
        "looks *= (1.0 - getattr(self, 'abandonment', [0.0] * 99)[position])"
        " * self.attraction[item]",
    ),
    Mutant(
        "DCM stops with 1 - v(k)",
        click_models,
        "DependentClickModel.stop_probability",
        "self.abandonment[position] *",
        "(1.0 - self.abandonment[position]) *",
    ),
    Mutant(
        "DCM stops without a click",
        click_models,
        "DependentClickModel.stop_probability",
        "self.abandonment[position] * self.attraction[item]",
        "self.abandonment[position]",
    ),
    Mutant(
        "DCM is off by one position",
        click_models,
        "DependentClickModel.stop_probability",
        "self.abandonment[position]",
        "self.abandonment[max(0, position - 1)]",
    ),
    Mutant(
        "DCM's reward is the probability of any click",
        click_models,
        "ClickModel.reward",
        "self.stop_probability(position, item)",
        "self.click_probability(position, item)",
    ),
    Mutant(
        "CM goes on after the first click",
        click_models,
        "CascadeModel.stop_probability",
        "return self.attraction[item]",
        "return 0.0",
    ),
    Mutant(
        "PBM ignores the position",
        click_models,
        "PositionBasedModel.click_probability",
        "self.examination_by_position[position] * ",
        "",
    ),
    Mutant(
        "PBM stops at a click",
        click_models,
        "PositionBasedModel.stop_probability",
        "return 0.0",
        "return self.click_probability(position, item)",
    ),
    Mutant(
        "draws belong to positions",
        click_models,
        "ClickModel.clicks",
        "coins.draw(Purpose.CLICK, item)",
        "coins.draw(Purpose.CLICK, position)",
    ),
]

METRIC_MUTANTS = [
    Mutant(
        "ties are inversions",
        metrics,
        "inversions",
        "attraction[upper] < ",
        "attraction[upper] <= ",
    ),
    Mutant(
        "discount log2(k)",
        metrics,
        "dcg",
        "math.log2(position + 2)",
        "max(1.0, math.log2(position + 1))",
    ),
    Mutant(
        "violations from K / 2 on",
        metrics,
        "Yardstick.violates",
        "2 * inverted > ",
        "2 * inverted >= ",
    ),
    Mutant("violations above |V_0|", metrics, "Yardstick.violates", " + self.shown", ""),
    Mutant("regret of the whole list", metrics, "Yardstick.regret", "self.top", "self.shown"),
    Mutant("the worst list is best", metrics, "best_list", "-attraction[item]", "attraction[item]"),
]


def named(mutants):
    return pytest.mark.parametrize("mutant", mutants, ids=lambda mutant: mutant.name)


def test_the_real_code_passes_the_checks_that_reject_mutants():
    assert_bubblerank_equals_naive()
    assert_models_equal_enumeration()
    assert_metrics_equal_definitions()


@named(BUBBLE_MUTANTS)
def test_misread_bubblerank_is_rejected(mutant, monkeypatch):
    mutant.plant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_bubblerank_equals_naive()


@named(CLICK_MUTANTS)
def test_misread_click_models_are_rejected(mutant, monkeypatch):
    mutant.plant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_models_equal_enumeration()


@named(METRIC_MUTANTS)
def test_misread_metrics_are_rejected(mutant, monkeypatch):
    mutant.plant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_metrics_equal_definitions()
