"""Rankers one step at a time: what every ranker promises a service that it is put into."""

import copy
import pickle

import numpy as np
import pytest

from bubblerank import Baseline, BatchRank, BubbleRank, CascadeKLUCB, TopRank
from bubblerank.closed_loop import advance_compiled, advance_reference, begin
from bubblerank.coins import Coins, stream_key
from bubblerank.config import RankerConfig
from bubblerank.rankers import RANKER_NAMES, policy
from tests.core import worlds

RANKERS = [BubbleRank, CascadeKLUCB, BatchRank, TopRank, Baseline]
ITEMS = [f"item {place}" for place in range(10)]
by_class = pytest.mark.parametrize("make", RANKERS, ids=lambda make: make.name)
by_ranker = pytest.mark.parametrize("ranker", RANKER_NAMES)
by_shown = pytest.mark.parametrize("positions", [None, 1, 4])


def made(make, **settings):
    return make(ITEMS, query="hand", horizon=500, **settings)


def users(model, seed=0):
    """Clicks of the hand-made problem's users on a list of names, step by step."""
    key = stream_key(seed, "hand", 0)

    def clicks(step, shown):
        indexes = [ITEMS.index(item) for item in shown]
        return worlds.MODELS[model].clicks(indexes, Coins(key, step))

    return clicks


def serve(ranker, steps, clicks):
    shown = []
    for _ in range(steps):
        shown.append(ranker.display())
        ranker.observe(clicks(ranker.step + 1, shown[-1]))
    return shown


def test_every_ranker_has_its_class():
    assert sorted(make.name for make in RANKERS) == sorted(RANKER_NAMES)


@by_class
@by_shown
@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
def test_serving_step_by_step_is_the_readable_and_the_compiled_simulation(make, positions, model):
    steps = 150
    shown = serve(ranker := made(make, positions=positions), steps, users(model))
    experiment = worlds.hand_made(model, make.name, horizon=500, positions=positions)
    for path in (advance_reference, advance_compiled):
        got = path(experiment, begin(experiment), steps, displays=True)
        names = [[ITEMS[item] for item in row] for row in got.displays.displayed]
        assert names == shown
        kept = policy(make.name).pack(got.progress.state)
        assert kept == policy(make.name).pack(ranker._state)


@by_class
@by_shown
def test_display_may_be_called_again_and_shows_distinct_items(make, positions):
    ranker, clicks = made(make, positions=positions), users("DCM")
    for step in range(1, 60):
        before = ranker.to_bytes()
        shown = ranker.display()
        assert ranker.display() == shown
        assert ranker.to_bytes() == before
        assert len(set(shown)) == len(shown) == (positions or 10)
        assert set(shown) <= set(ITEMS)
        ranker.observe(clicks(step, shown))
        assert ranker.step == step
        assert sorted(ranker.base) == sorted(ITEMS)


@by_class
def test_a_pickled_copied_or_restored_ranker_goes_on_alike(make):
    original, clicks = made(make), users("PBM")
    serve(original, 80, clicks)
    others = [
        pickle.loads(pickle.dumps(original)),  # noqa: S301
        copy.deepcopy(original),
        copy.copy(original),
        made(make).restore(original.to_bytes()),
    ]
    expected = serve(original, 80, clicks)
    for other in others:
        assert serve(other, 80, clicks) == expected
        assert other.to_bytes() == original.to_bytes()


@by_class
def test_the_same_settings_and_clicks_give_the_same_lists(make):
    one, other = (serve(made(make, seed=5, run=2), 60, users("CM")) for _ in range(2))
    assert one == other


@pytest.mark.parametrize("make", RANKERS[:-1], ids=lambda make: make.name)
@pytest.mark.parametrize("change", [{"seed": 1}, {"run": 1}])
def test_another_seed_or_run_gives_other_lists(make, change):
    clicks = users("CM")
    assert serve(made(make, **change), 60, clicks) != serve(made(make), 60, clicks)


@by_ranker
@by_shown
def test_no_function_changes_the_state_that_it_is_given(ranker, positions):
    """Purity: an older state decides and learns the same after the newer ones were made."""
    functions, config = policy(ranker), RankerConfig(positions=positions, horizon=300)
    key, model = stream_key(0, "pure", 0), worlds.MODELS["DCM"]
    state = functions.start(10, config)
    for step in range(1, 80):
        coins = Coins(key, step)
        before, frozen = functions.pack(state), copy.deepcopy(state)
        prepared = functions.prepare(state, config)
        choice = functions.decide(prepared, config, coins)
        clicks = model.clicks(choice.displayed, coins)
        after = functions.observe(prepared, config, choice, clicks, coins)
        assert functions.pack(state) == before
        for name in type(state).__dataclass_fields__:
            np.testing.assert_equal(getattr(state, name), getattr(frozen, name))
        assert functions.decide(prepared, config, coins) == choice
        assert functions.prepare(prepared, config).step == prepared.step
        repeated = functions.observe(prepared, config, choice, clicks, coins)
        assert functions.pack(repeated) == functions.pack(after)
        assert after.step == step
        state = after


@by_class
def test_a_wrong_number_of_clicks_is_refused(make):
    ranker = made(make, positions=4)
    with pytest.raises(ValueError, match="as many as displayed items, 4, got 3"):
        ranker.observe([True, False, False])
    assert ranker.step == 0


@by_class
@pytest.mark.parametrize("items", [[], ["a", "a"]])
def test_no_items_or_repeated_items_are_refused(make, items):
    with pytest.raises(ValueError, match="items must be distinct and at least one"):
        make(items, horizon=10)


@by_class
def test_more_positions_than_items_are_refused(make):
    with pytest.raises(ValueError, match=r"positions must be at most .* 11 positions for 10 items"):
        made(make, positions=11)


def test_the_state_of_another_ranker_or_list_is_refused():
    ranker = made(BubbleRank)
    with pytest.raises(ValueError, match="the state is of baseline, this ranker is bubblerank"):
        ranker.restore(made(Baseline).to_bytes())
    with pytest.raises(ValueError, match="the state is of 2 items, this ranker has 10"):
        ranker.restore(BubbleRank(["a", "b"], horizon=500).to_bytes())


def test_clicks_of_any_truth_value_count_once():
    """A click count of 2, or a numpy bool, is one click: |s| never passes n."""
    plain, counted = made(BubbleRank), made(BubbleRank)
    for step in range(1, 40):
        clicks = users("DCM")(step, plain.display())
        plain.observe(clicks)
        counted.observe([np.int64(3) if click else 0 for click in clicks])
    assert counted.to_bytes() == plain.to_bytes()


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"positions": 0}, "positions must lie in"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"delta": 1.5}, r"delta must lie in \(0, 1\), got 1.5: the paper uses n \*\* -4"),
        ({"delta": 0.0}, "delta must lie in"),
        ({"first_horizon": 0}, "first_horizon must be at least 1, got 0"),
    ],
)
def test_settings_out_of_bounds_are_refused_with_their_bounds(bad, message):
    with pytest.raises(ValueError, match=message):
        RankerConfig(**bad)


def test_all_bad_settings_are_told_at_once():
    with pytest.raises(ValueError, match=r"positions.*; horizon.*; delta"):
        RankerConfig(positions=0, horizon=0, delta=2.0)
