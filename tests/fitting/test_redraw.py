import numpy as np
import pytest

from bubblerank.config import RankerConfig
from bubblerank.fitting.estimate import fit
from bubblerank.fitting.evaluate import _click_probability
from bubblerank.fitting.problems import fitted_problems, refitted_problem
from bubblerank.fitting.redraw import redraw
from bubblerank.refits import simulate_refits
from bubblerank.simulation import simulate
from tests.fitting.logs import generated, observations, random_sessions

MODELS = ["CM", "DCM", "PBM"]


@pytest.mark.parametrize("name", MODELS)
def test_redrawn_clicks_have_the_probabilities_of_the_model(name):
    _, seen = generated(sessions=100_000, queries=2, click_model=name, positions=5, seed=1)
    model = fit(seen, name)
    again = redraw(model, np.random.default_rng(2))
    for lists, places in seen.rectangles():
        chances = _click_probability(
            model, model.attraction[seen.pair[places]], model.position_parameters(5)
        )
        expected = chances * seen.list_sessions[lists][:, None]
        # Five standard deviations of a binomial, over 40 numbers.
        assert (np.abs(again.clicks[places] - expected) < 5 * np.sqrt(expected) + 1).all()


@pytest.mark.parametrize("name", MODELS)
def test_redrawn_counts_are_those_of_possible_sessions(name):
    seen = observations(random_sessions(400, seed=8))
    again = redraw(fit(seen, name), np.random.default_rng(3))
    assert np.array_equal(again.sessions, seen.sessions)
    assert (again.clicks <= again.sessions).all()
    if name == "PBM":
        return
    firsts = np.add.reduceat(again.first, again.list_start)
    lasts = np.add.reduceat(again.last, again.list_start)
    assert np.array_equal(firsts, lasts)
    assert (firsts <= again.list_sessions).all()
    assert (again.first <= again.clicks).all()
    assert (again.last <= again.clicks).all()
    if name == "CM":
        assert np.array_equal(again.first, again.clicks)
        assert np.array_equal(again.last, again.clicks)


@pytest.mark.parametrize("name", ["CM", "PBM"])
def test_a_refit_to_redrawn_clicks_is_near_the_fit(name):
    """Not so for a DCM, where counting is biased, and a second time again."""
    _, seen = generated(
        sessions=200_000, queries=3, click_model=name, positions=4, randomised=True, seed=2
    )
    model = fit(seen, name)
    again = fit(redraw(model, np.random.default_rng(4)), name)
    assert again.attraction == pytest.approx(model.attraction, abs=0.03)


def test_refits_simulate_the_refitted_problems():
    _, seen = generated(sessions=20_000, queries=3, positions=4, seed=3)
    model = fit(seen, "PBM")
    chosen = fitted_problems(model, 2)
    found = simulate_refits(model, chosen, RankerConfig(horizon=500), 500, 3, 7, 2)
    assert found.reward.shape == (2, 2)
    again = fit(redraw(model, np.random.default_rng([7, 1])), "PBM", model.prior)
    problems = [refitted_problem(fitted, again) for fitted in chosen]
    rows = simulate(problems, ("bubblerank", "baseline"), 500, seed=7, top=3, checkpoints=[500])
    expected = {(row["ranker"], row["query"]): row for row in rows.to_pylist()}
    for place, problem in enumerate(problems):
        ranked = expected["bubblerank", problem.query]
        base = expected["baseline", problem.query]
        assert found.reward[1, place] == pytest.approx(ranked["reward"] / 500)
        assert found.baseline[1, place] == pytest.approx(base["reward"] / 500)
        assert found.ndcg[1, place] == pytest.approx(ranked["ndcg"])
        assert found.baseline_ndcg[1, place] == pytest.approx(base["ndcg"])
