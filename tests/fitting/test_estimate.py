import itertools

import numpy as np
import pytest

from bubblerank.fitting.estimate import fit
from bubblerank.fitting.evaluate import evaluate
from bubblerank.fitting.position_based import run_em
from bubblerank.fitting.prior import Prior
from tests.fitting import naive
from tests.fitting.logs import attraction_by_pair, generated, observations, random_sessions

SESSIONS = random_sessions(400, seed=1)
TEST = random_sessions(150, seed=2, queries=5, items=8, longest=6)
PRIORS = [(0.0, 0.0), (1.0, 2.0), (1.0, 5.0)]
HAND_MADE = [
    ("q", ["a", "b", "c"], [False, True, False]),
    ("q", ["a", "b", "c"], [True, False, True]),
    ("q", ["b", "a", "c"], [False, False, False]),
]


def test_a_cascade_model_equals_a_count_by_hand():
    found = attraction_by_pair(fit(observations(HAND_MADE), "CM", Prior(0, 0)))
    assert found == {("q", "a"): 1 / 3, ("q", "b"): 1 / 2, ("q", "c"): 0.0}


def test_a_dependent_click_model_equals_a_count_by_hand():
    model = fit(observations(HAND_MADE), "DCM", Prior(0, 0))
    found = attraction_by_pair(model)
    assert found == {("q", "a"): 1 / 3, ("q", "b"): 1 / 3, ("q", "c"): 1 / 2}
    assert model.by_position.tolist() == [0.0, 1.0, 1.0]


def test_the_prior_is_added_to_the_counts():
    found = attraction_by_pair(fit(observations(HAND_MADE), "CM", Prior(1, 2)))
    assert found == {("q", "a"): 2 / 5, ("q", "b"): 2 / 4, ("q", "c"): 1 / 3}


@pytest.mark.parametrize("prior", PRIORS)
def test_counting_equals_a_session_by_session_count(prior):
    seen = observations(SESSIONS)
    assert attraction_by_pair(fit(seen, "CM", Prior(*prior))) == pytest.approx(
        naive.fit_cm(SESSIONS, prior)
    )
    model = fit(seen, "DCM", Prior(*prior))
    attraction, stops = naive.fit_dcm(SESSIONS, prior)
    assert attraction_by_pair(model) == pytest.approx(attraction)
    assert model.by_position.tolist() == pytest.approx(stops)


@pytest.mark.parametrize("prior", PRIORS)
def test_plain_em_equals_a_naive_em(prior):
    model = fit(observations(SESSIONS), "PBM", Prior(*prior), 20, 1e-12, plain=True)
    alpha, chi, trace = naive.em_pbm(SESSIONS, prior, 20)
    found = [step.log_likelihood for step in model.iterations]
    assert found[:-1] == pytest.approx(trace, abs=1e-8)
    assert found[-1] == pytest.approx(naive.pbm_likelihood(SESSIONS, alpha, chi), abs=1e-8)
    assert model.by_position == pytest.approx(np.array(chi) / max(chi))
    scaled = {pair: value * max(chi) for pair, value in alpha.items()}
    assert attraction_by_pair(model) == pytest.approx(scaled)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("seed", range(4))
def test_em_never_lets_the_objective_fall(plain, prior, seed):
    sessions = random_sessions(120, seed=10 + seed)
    model = fit(observations(sessions), "PBM", Prior(*prior), 300, 1e-9, plain=plain)
    objectives = np.array([step.objective for step in model.iterations])
    assert (np.diff(objectives) >= -1e-9 * np.abs(objectives[1:])).all()
    if prior == (0.0, 0.0):
        assert objectives.tolist() == [step.log_likelihood for step in model.iterations]


def test_acceleration_reaches_what_plain_em_creeps_to():
    _, seen = generated(sessions=5000, queries=5, positions=5, seed=4)
    quick = fit(seen, "PBM", None, 5000, 1e-9)
    slow = fit(seen, "PBM", None, 20_000, 1e-9, plain=True)
    assert quick.converged
    assert len(quick.iterations) < len(slow.iterations)
    assert quick.iterations[-1].objective >= slow.iterations[-1].objective - 1e-6
    assert quick.by_position == pytest.approx(slow.by_position, abs=1e-3)


@pytest.mark.parametrize("sessions", [TEST, SESSIONS], ids=["test", "train"])
@pytest.mark.parametrize("name", ["CM", "DCM", "PBM"])
def test_log_likelihood_and_perplexity_equal_a_session_by_session_evaluation(name, sessions):
    model = fit(observations(SESSIONS), name)
    found = evaluate(model, observations(sessions))
    parameters = (attraction_by_pair(model), model.unseen, model.position_parameters(6).tolist())
    overall, by_rank = naive.perplexity(name, sessions, *parameters)
    assert found.perplexity == pytest.approx(overall)
    assert found.perplexity_by_rank == pytest.approx(by_rank)
    expected = naive.log_likelihood(name, sessions, *parameters)
    assert found.log_likelihood == pytest.approx(expected, rel=1e-6)
    assert found.sessions == len(sessions)


def test_what_training_never_showed_is_told_and_has_the_prior():
    model = fit(observations(HAND_MADE), "CM")
    found = evaluate(model, observations([("q", ["new"], [True]), ("other", ["a"], [False])]))
    assert found.unseen == 1.0
    assert found.perplexity == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["CM", "PBM"])
def test_errors_of_recovered_parameters_shrink_as_one_over_the_root_of_sessions(name):
    """16 times the sessions: a quarter of the median error, within a factor 2, over 100 pairs."""
    errors = []
    for sessions in (8_000, 128_000):
        world, seen = generated(
            sessions=sessions, queries=20, click_model=name, randomised=True, positions=5, seed=3
        )
        found = attraction_by_pair(fit(seen, name, Prior(0, 0)))
        truth = {
            (problem.query, item): value
            for problem in world.problems()
            for item, value in zip(problem.items, problem.attraction, strict=True)
        }
        errors.append(float(np.median([abs(found[pair] - truth[pair]) for pair in truth])))
    assert errors[1] < 0.02
    assert 2.0 < errors[0] / errors[1] < 8.0


def test_examination_is_recovered():
    world, seen = generated(
        sessions=200_000, queries=10, click_model="PBM", randomised=True, positions=5, seed=5
    )
    assert fit(seen, "PBM").by_position == pytest.approx(world.by_position, abs=0.02)


def limits_of_counting(alpha, stops):
    """What counting a DCM tends to: expectations over all click patterns of one list."""
    width = len(alpha)
    examined, clicked, last_at = np.zeros((3, width))
    for pattern in itertools.product([0, 1], repeat=width):
        places = np.flatnonzero(pattern)
        chance, looks = 1.0, 1.0
        for place, click in enumerate(pattern):
            p = alpha[place] * looks
            chance *= p if click else 1 - p
            looks = 1 - stops[place] if click else looks * (1 - alpha[place]) / (1 - p)
        last = places[-1] if len(places) else width
        examined[: last + 1] += chance
        clicked += chance * np.array(pattern)
        last_at[places[-1:]] += chance
    return clicked / examined, last_at / clicked


def test_counting_a_dependent_click_model_tends_to_its_limit_as_one_over_the_root_of_sessions():
    """Guo et al.'s estimate takes every last click for a stop, so the limit is not the truth."""
    errors = []
    for sessions in (2_000, 32_000):
        gaps = []
        for seed in range(8):
            world, seen = generated(
                sessions=sessions, queries=1, variants=1, click_model="DCM", positions=4, seed=seed
            )
            attraction, stops = limits_of_counting(world.attraction[0], world.by_position)
            model = fit(seen, "DCM", Prior(0, 0))
            gaps += [*(model.attraction - attraction), *(model.by_position - stops)]
        errors.append(float(np.sqrt(np.mean(np.square(gaps)))))
    assert errors[1] < 0.02
    assert 2.0 < errors[0] / errors[1] < 8.0


def test_an_empty_log_is_refused():
    with pytest.raises(ValueError, match="nothing to fit"):
        observations([])


def test_iterations_below_one_are_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        run_em(None, Prior(1, 5), 0)


@pytest.mark.parametrize("clicks, views", [(-1, 2), (3, 2), (0, float("inf"))])
def test_an_impossible_prior_is_refused(clicks, views):
    with pytest.raises(ValueError, match="0 <= clicks <= views"):
        Prior(clicks, views)
