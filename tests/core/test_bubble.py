"""BubbleRank: readable equals naive, compiled equals readable, however the steps are cut."""

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubblerank.closed_loop import (
    Experiment,
    Progress,
    advance_compiled,
    advance_reference,
    begin,
)
from bubblerank.config import RankerConfig
from bubblerank.rankers.bubble import BubbleState
from tests.core import worlds


def assert_same_state(one, other):
    assert one.base == other.base
    assert (one.step, one.horizon) == (other.step, other.horizon)
    np.testing.assert_array_equal(one.wins, other.wins)
    np.testing.assert_array_equal(one.trials, other.trials)


def assert_same_advance(one, other):
    assert_same_state(one.progress.state, other.progress.state)
    assert one.progress.card == other.progress.card
    assert one.checkpoints == other.checkpoints
    for mine, theirs in zip(one.displays or (), other.displays or (), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def assert_equals_naive(experiment, steps):
    return assert_equals_naive_from_anywhere(experiment, begin(experiment), steps)


def assert_equals_naive_from_anywhere(experiment, progress, steps, path=advance_reference):
    base, shown, clicks, ranker = worlds.naive_trajectory(experiment, steps, progress.state)
    got = path(experiment, progress, steps, displays=True)
    np.testing.assert_array_equal(got.displays.base, base)
    np.testing.assert_array_equal(got.displays.displayed, shown)
    np.testing.assert_array_equal(got.displays.clicked, clicks)
    wins, trials = worlds.naive_matrices(ranker)
    np.testing.assert_array_equal(got.progress.state.wins, wins)
    np.testing.assert_array_equal(got.progress.state.trials, trials)
    assert got.progress.state.base == tuple(item - 1 for item in ranker.base)
    return ranker.promotions


@given(worlds.experiments(), st.integers(1, 60))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_readable_equals_naive_step_for_step(experiment, steps):
    assert_equals_naive(experiment, steps)


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize("how", [{"horizon": 3}, {"delta": 0.5}, {"first_horizon": 2}])
def test_readable_equals_naive_where_many_pairs_are_decided(model, freeze, how):
    experiment = worlds.steep(model, freeze_decided=freeze, **how)
    assert assert_equals_naive(experiment, 1500) >= 5


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
@pytest.mark.parametrize("positions", [2, 3])
def test_readable_equals_naive_where_hidden_items_take_places(model, positions):
    experiment = worlds.steep(model, positions=positions, delta=0.5)
    assert assert_equals_naive(experiment, 1000) >= 3


def random_start(number):
    """A random experiment, in the midst of it: any statistics, and a base list in any order."""
    rng, experiment = random.Random(number), random_experiment(number)
    items = experiment.items
    wins, trials = np.zeros((2, items, items), dtype=np.int64)
    for i in range(items):
        for j in range(i):
            trials[i, j] = trials[j, i] = rng.choice([0, 1, 7, 50, 300])
            lost = rng.choice([0, trials[i, j], trials[i, j] // 2])
            wins[i, j] = trials[i, j] - 2 * lost
            wins[j, i] = -wins[i, j]
    base = tuple(rng.sample(range(items), items))
    horizon = experiment.config.start_horizon
    step = horizon if experiment.config.doubling else rng.randint(0, 10**6)
    return experiment, Progress(BubbleState(base, wins, trials, step, horizon))


@pytest.mark.parametrize("number", range(100, 160))
def test_from_any_state_at_all_three_ways_are_the_same(number):
    """Chains of promotions and inverted pairs that are known: rare on the way from R_0."""
    experiment, progress = random_start(number)
    assert_equals_naive_from_anywhere(experiment, progress, 5)
    assert_equals_naive_from_anywhere(experiment, progress, 5, advance_compiled)


def blocks(experiment, path, cuts, checkpoints, displays):
    """The trajectory in blocks that end at ``cuts``."""
    progress, rows, parts = begin(experiment), [], []
    for begun, end in zip([0, *cuts], cuts, strict=False):
        part = path(experiment, progress, end - begun, checkpoints, displays)
        progress = part.progress
        rows.extend(part.checkpoints)
        parts.append(part.displays)
    return progress, rows, parts


@given(worlds.experiments(), st.integers(1, 300), st.data())
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
def test_compiled_equals_readable_trajectory_for_trajectory(experiment, steps, data):
    due = sorted(data.draw(st.sets(st.integers(1, steps), max_size=5)))
    for displays in (True, False):
        assert_same_advance(
            advance_compiled(experiment, begin(experiment), steps, due, displays),
            advance_reference(experiment, begin(experiment), steps, due, displays),
        )


@given(worlds.experiments(), st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_cutting_steps_into_blocks_changes_nothing(experiment, data):
    cuts = sorted(data.draw(st.sets(st.integers(1, 400), min_size=1, max_size=8)))
    due = sorted(data.draw(st.sets(st.integers(1, 400), max_size=6)))
    whole = advance_compiled(experiment, begin(experiment), cuts[-1], due, displays=True)
    progress, rows, parts = blocks(experiment, advance_compiled, cuts, due, True)
    assert_same_state(progress.state, whole.progress.state)
    assert progress.card == whole.progress.card
    assert rows == whole.checkpoints
    for column, expected in zip(zip(*parts, strict=True), whole.displays, strict=True):
        np.testing.assert_array_equal(np.concatenate(column), expected)


@given(worlds.experiments(), st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_readable_and_compiled_blocks_may_alternate(experiment, data):
    cuts = sorted(data.draw(st.sets(st.integers(1, 120), min_size=2, max_size=5)))
    paths = [advance_reference, advance_compiled]
    progress = begin(experiment)
    for turn, (begun, end) in enumerate(zip([0, *cuts], cuts, strict=False)):
        progress = paths[turn % 2](experiment, progress, end - begun).progress
    whole = advance_compiled(experiment, begin(experiment), cuts[-1]).progress
    assert_same_state(progress.state, whole.state)
    assert progress.card == whole.card


@given(worlds.experiments(), st.integers(1, 200))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_recording_displays_changes_no_metric(experiment, steps):
    due = list(range(1, steps + 1, 7))
    without = advance_compiled(experiment, begin(experiment), steps, due)
    recorded = advance_compiled(experiment, begin(experiment), steps, due, displays=True)
    assert without.displays is None
    assert without.checkpoints == recorded.checkpoints
    assert without.progress.card == recorded.progress.card


def random_experiment(number):
    rng = random.Random(number)
    shown = rng.randint(2, 20)
    items = rng.choice([shown, rng.randint(shown, 30)])
    hidden = items - shown
    attraction = tuple(
        [rng.choice([0.02, 0.1, 0.4, 0.9]) for _ in range(shown)]
        + [rng.choice([0.5, 0.95]) for _ in range(hidden)]
    )
    positions = tuple(rng.uniform(0.3, 1.0) for _ in range(shown))
    maker = rng.choice(
        [
            lambda: worlds.CascadeModel(attraction),
            lambda: worlds.DependentClickModel(attraction, positions),
            lambda: worlds.PositionBasedModel(attraction, positions),
        ]
    )
    how = rng.choice([{"horizon": 2}, {"delta": 0.6}, {"first_horizon": rng.randint(1, 50)}])
    config = RankerConfig(shown, freeze_decided=rng.random() < 0.5, **how)
    return Experiment("bubblerank", f"query {number}", maker(), config, seed=number)


def test_the_random_experiments_promote_double_and_displace_hidden_items():
    """Equality means little where nothing happens: these trajectories are full of events."""
    promoting = doubling = taking = 0
    for number in range(60):
        experiment = random_experiment(number)
        compiled = advance_compiled(experiment, begin(experiment), 400, [7, 400], displays=True)
        readable = advance_reference(experiment, begin(experiment), 400, [7, 400], displays=True)
        assert_same_advance(compiled, readable)
        unrecorded = advance_compiled(experiment, begin(experiment), 400, [7, 400])
        assert_same_advance(unrecorded, readable._replace(displays=None))
        base = compiled.displays.base
        promoting += (base[-1] != base[0]).any()
        doubling += compiled.progress.state.horizon > experiment.config.start_horizon
        taking += (base[:, : experiment.shown] >= experiment.shown).any()
    assert promoting >= 30
    assert doubling >= 10
    assert taking >= 5


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
def test_long_trajectories_stay_equal(model):
    experiment = worlds.hand_made(model, horizon=20)
    due = [10, 100, 1_000, 5_000]
    readable = advance_reference(experiment, begin(experiment), 5_000, due, displays=True)
    compiled = advance_compiled(experiment, begin(experiment), 5_000, due, displays=True)
    assert_same_advance(compiled, readable)
    unrecorded = advance_compiled(experiment, begin(experiment), 5_000, due)
    assert_same_advance(unrecorded, readable._replace(displays=None))


def test_one_item_alone_is_shown_for_ever():
    experiment = dataclasses.replace(
        worlds.hand_made("CM"), model=worlds.CascadeModel((0.5,)), config=RankerConfig()
    )
    got = advance_compiled(experiment, begin(experiment), 50, [50], displays=True)
    assert_same_advance(
        got, advance_reference(experiment, begin(experiment), 50, [50], displays=True)
    )
    assert (got.displays.displayed == 0).all()


@pytest.mark.parametrize("shown, items", [(21, 21), (22, 22), (12, 40), (20, 100), (130, 140)])
def test_long_lists_are_equal_too(shown, items):
    attraction = tuple((7 * item % items + 1) / (items + 1) for item in range(items))
    model = worlds.PositionBasedModel(attraction, tuple(1.0 for _ in range(shown)))
    experiment = Experiment("bubblerank", "long", model, RankerConfig(shown, delta=0.5))
    assert_same_advance(
        advance_compiled(experiment, begin(experiment), 40, [40], displays=True),
        advance_reference(experiment, begin(experiment), 40, [40], displays=True),
    )
