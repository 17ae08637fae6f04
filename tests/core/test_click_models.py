"""Click models against the enumeration of all users, readable and compiled."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from bubblerank.click_models import (
    CascadeModel,
    DependentClickModel,
    PositionBasedModel,
    make_click_model,
)
from bubblerank.coins import Coins, stream_key
from bubblerank.kernels.coins import first_word
from bubblerank.kernels.world import draw_clicks, make_world, thresholds
from bubblerank.metrics import make_yardstick
from tests import naive
from tests.core import worlds

ALPHA = (0.7, 0.05, 0.4, 0.9)
MODELS = [
    CascadeModel(ALPHA),
    DependentClickModel(ALPHA, (0.9, 0.35, 0.6, 0.1)),
    PositionBasedModel(ALPHA, (0.95, 0.5, 0.3, 0.15)),
]
by_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)

FAILURES = 5.0
"""Standard errors: a share that is right is further off with probability below 1e-6."""


def one_based(items):
    return [item + 1 for item in items]


def enumerated(model, items):
    """Examination and clicks by position, and the expected reward, from all possible users."""
    examined, clicked = np.zeros(len(items)), np.zeros(len(items))
    reward = 0.0
    for chance, clicks, looks, satisfied in worlds.naive_users(model).outcomes(one_based(items)):
        examined += chance * np.array(looks)
        clicked += chance * np.array(clicks)
        reward += chance * (sum(clicks) if model.name == "PBM" else satisfied)
    return examined, clicked, reward


def assert_models_equal_enumeration():
    """The check that the click models pass and no misreading of them does."""
    key = stream_key(3, "users", 1)
    for model in MODELS:
        users = worlds.naive_users(model)
        for items in itertools.permutations(range(4)):
            examined, _, reward = enumerated(model, items)
            np.testing.assert_allclose(model.examination(items), examined, atol=1e-12)
            assert math.isclose(model.reward(items, 4), reward, abs_tol=1e-12)
        for step in range(1, 200):
            items = [2, 0, 3, 1]
            expected = users.clicks(
                one_based(items), lambda item, t=step: naive.uniform(key, naive.CLICK, t, item - 1)
            )
            assert model.clicks(items, Coins(key, step)) == list(expected.values())


def test_examination_and_reward_equal_the_enumeration_of_all_users():
    assert_models_equal_enumeration()


@given(st.data())
@settings(max_examples=50)
def test_examination_and_reward_equal_enumeration_on_random_models(data):
    shown = data.draw(st.integers(1, 4))
    model = data.draw(worlds.click_models(shown + 1, shown))
    items = data.draw(st.permutations(range(shown + 1)))[:shown]
    examined, clicked, reward = enumerated(model, items)
    np.testing.assert_allclose(model.examination(items), examined, atol=1e-12)
    click = [model.click_probability(k, item) for k, item in enumerate(items)]
    looks = np.ones(shown) if model.name == "PBM" else examined
    np.testing.assert_allclose(looks * click, clicked, atol=1e-12)
    assert math.isclose(model.reward(items, shown), reward, abs_tol=1e-12)


def test_closed_forms_of_the_paper():
    a, v, chi = ALPHA, MODELS[1].abandonment, MODELS[2].examination_by_position
    assert MODELS[0].examination((0, 1, 2)) == pytest.approx([1, 0.3, 0.3 * 0.95])
    assert MODELS[0].reward((0, 1), 2) == pytest.approx(1 - (1 - a[0]) * (1 - a[1]))
    dcm = [1, 1 - v[0] * a[0], (1 - v[0] * a[0]) * (1 - v[1] * a[1])]
    assert MODELS[1].examination((0, 1, 2)) == pytest.approx(dcm)
    assert MODELS[1].reward((0, 1), 2) == pytest.approx(1 - dcm[2])
    assert MODELS[2].examination((3, 1)) == pytest.approx(chi[:2])
    assert MODELS[2].reward((3, 1), 2) == pytest.approx(chi[0] * a[3] + chi[1] * a[1])


def test_reward_is_that_of_the_top_positions_alone():
    for model in MODELS:
        assert model.reward((2, 1, 0, 3), 2) == model.reward((2, 1), 4)


@by_model
def test_readable_click_frequencies_equal_the_closed_form(model):
    users, items = 20_000, [1, 0, 3, 2]
    key = stream_key(11, "frequency", 0)
    clicks = np.array([model.clicks(items, Coins(key, step)) for step in range(users)])
    assert_frequencies(clicks, model, items)


@njit
def many_clicks(click, stop, key, displayed, users):
    clicks = np.zeros((users, displayed.size), dtype=np.int64)
    for step in range(users):
        draw_clicks(click, stop, first_word(key, step), displayed, clicks[step])
    return clicks


@by_model
def test_compiled_click_frequencies_equal_the_closed_form(model):
    items = np.array([1, 0, 3, 2])
    world = make_world(make_yardstick(model, 4, 4), stream_key(12, "frequency", 0))
    clicks = many_clicks(world.click, world.stop, world.click_key, items, 400_000)
    assert_frequencies(clicks, model, items.tolist())


def assert_frequencies(clicks, model, items):
    """The share of every pattern of clicks, not only of every position."""
    chances = {}
    for chance, clicked, _, _ in worlds.naive_users(model).outcomes(one_based(items)):
        pattern = tuple(int(click) for click in clicked)
        chances[pattern] = chances.get(pattern, 0.0) + chance
    assert math.isclose(math.fsum(chances.values()), 1.0)
    patterns, counts = np.unique(clicks, axis=0, return_counts=True)
    counted = {
        tuple(map(int, row)): int(count) for row, count in zip(patterns, counts, strict=True)
    }
    assert set(counted) <= set(chances)
    users = len(clicks)
    for pattern, chance in chances.items():
        error = math.sqrt(chance * (1 - chance) / users)
        assert abs(counted.get(pattern, 0) / users - chance) <= FAILURES * error + 2 / users


@given(st.data())
@settings(max_examples=60)
def test_compiled_clicks_equal_readable_clicks(data):
    shown = data.draw(st.integers(1, 20))
    items = shown + data.draw(st.integers(0, 10))
    model = data.draw(worlds.click_models(items, shown))
    displayed = data.draw(st.permutations(range(items)))[:shown]
    key = data.draw(st.integers(0, 2**64 - 1))
    world = make_world(make_yardstick(model, shown, 5), key)
    compiled = many_clicks(world.click, world.stop, world.click_key, np.array(displayed), 20)
    readable = [model.clicks(displayed, Coins(key, step)) for step in range(20)]
    np.testing.assert_array_equal(compiled, np.array(readable))


@given(st.lists(worlds.ATTRACTIONS, min_size=1), st.integers(0, 2**32 - 1))
def test_integer_thresholds_are_the_comparison_of_reals(probabilities, draw):
    got = draw < thresholds(np.array(probabilities)).astype(object)
    assert got.tolist() == [draw / 2**32 < p for p in probabilities]


@given(st.integers(0, 2**32), st.sampled_from([-1, 0, 1]))
def test_thresholds_hold_next_to_a_multiple_of_the_grid(numerator, shift):
    p = numerator / 2**32
    draw = min(max(numerator + shift, 0), 2**32 - 1)
    assert (draw < int(thresholds(np.array([p]))[0])) == (draw / 2**32 < p)


def test_certain_and_impossible_clicks_are_so():
    model = CascadeModel((0.0, 1.0))
    assert all(model.clicks([0, 1], Coins(5, step)) == [False, True] for step in range(200))


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf])
def test_no_probability_is_refused_with_its_place_and_value(bad):
    expected = r"attraction\[1\] must lie in \[0, 1\], got .*: it is a probability"
    with pytest.raises(ValueError, match=expected):
        CascadeModel((0.5, bad))
    with pytest.raises(ValueError, match=r"abandonment\[0\] must lie in \[0, 1\], got"):
        DependentClickModel((0.5,), (bad,))
    with pytest.raises(ValueError, match=r"examination\[0\] must lie in \[0, 1\], got"):
        PositionBasedModel((0.5,), (bad,))


def test_missing_parameters_are_refused_with_what_to_give():
    with pytest.raises(ValueError, match="attraction must hold at least one"):
        CascadeModel(())
    with pytest.raises(ValueError, match=r"DCM needs abandonment.*give v\(k\)"):
        make_click_model("DCM", (0.5,))
    with pytest.raises(ValueError, match=r"PBM needs examination.*give chi\(k\)"):
        make_click_model("PBM", (0.5,))
    with pytest.raises(ValueError, match="click_model must be CM, DCM or PBM, got 'cm'"):
        make_click_model("cm", (0.5,))


@by_model
def test_a_model_is_made_again_from_its_name_and_parameters(model):
    again = make_click_model(
        model.name,
        list(model.attraction),
        getattr(model, "abandonment", None),
        getattr(model, "examination_by_position", None),
    )
    assert again == model
