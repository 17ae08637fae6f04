"""Problems and experiments that the core is tested on: one made by hand, others at random."""

import numpy as np
from hypothesis import strategies as st

from bubblerank.click_models import CascadeModel, DependentClickModel, PositionBasedModel
from bubblerank.closed_loop import Experiment
from bubblerank.coins import stream_key
from bubblerank.config import RankerConfig
from tests import naive

ALPHA = (0.70, 0.45, 0.32, 0.24, 0.17, 0.12, 0.08, 0.05, 0.03, 0.01)
PRODUCTION = (2, 0, 5, 1, 4, 8, 3, 9, 6, 7)
ATTRACTION = tuple(ALPHA[item] for item in PRODUCTION)
ABANDONMENT = tuple(0.95 - 0.05 * k for k in range(1, 11))
EXAMINATION = tuple(k**-0.7 for k in range(1, 11))
MODELS = {
    "CM": CascadeModel(ATTRACTION),
    "DCM": DependentClickModel(ATTRACTION, ABANDONMENT),
    "PBM": PositionBasedModel(ATTRACTION, EXAMINATION),
}

ATTRACTIONS = st.one_of(
    st.sampled_from([0.0, 0.05, 0.2, 0.5, 0.9, 1.0]), st.floats(0.0, 1.0, allow_nan=False)
)


def hand_made(model, ranker="bubblerank", **settings):
    """An experiment on the hand-made problem of the figures that are known exactly."""
    run, seed = settings.pop("run", 0), settings.pop("seed", 0)
    return Experiment(ranker, "hand", MODELS[model], RankerConfig(**settings), run, seed)


def steep(model, **settings):
    """An experiment on six items in the worst order, so unlike that a few clicks decide."""
    attraction = (0.02, 0.1, 0.02, 0.4, 0.05, 0.9)
    models = {
        "CM": CascadeModel(attraction),
        "DCM": DependentClickModel(attraction, (0.5,) * 6),
        "PBM": PositionBasedModel(attraction, (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)),
    }
    return Experiment("bubblerank", "steep", models[model], RankerConfig(**settings))


@st.composite
def click_models(draw, items, shown):
    attraction = tuple(draw(st.lists(ATTRACTIONS, min_size=items, max_size=items)))
    by_position = tuple(draw(st.lists(ATTRACTIONS, min_size=shown, max_size=shown)))
    name = draw(st.sampled_from(["CM", "DCM", "PBM"]))
    if name == "CM":
        return CascadeModel(attraction)
    if name == "DCM":
        return DependentClickModel(attraction, by_position)
    return PositionBasedModel(attraction, by_position)


@st.composite
def configs(draw, shown):
    """Settings under which some dozens of clicks already decide a pair."""
    kind = draw(st.sampled_from(["horizon", "delta", "doubling"]))
    freeze = draw(st.booleans())
    if kind == "horizon":
        horizon = draw(st.sampled_from([1, 2, 3, 10, 1000]))
        return RankerConfig(shown, horizon=horizon, freeze_decided=freeze)
    if kind == "delta":
        delta = draw(st.floats(0.05, 0.95))
        return RankerConfig(shown, delta=delta, freeze_decided=freeze)
    first = draw(st.integers(1, 20))
    return RankerConfig(shown, first_horizon=first, freeze_decided=freeze)


@st.composite
def experiments(draw, ranker="bubblerank", most_items=30):
    shown = draw(st.integers(2, 20))
    items = draw(st.one_of(st.just(shown), st.integers(shown, most_items)))
    return Experiment(
        ranker=ranker,
        query=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=4)),
        model=draw(click_models(items, shown)),
        config=draw(configs(shown)),
        run=draw(st.integers(0, 3)),
        seed=draw(st.integers(-(2**63), 2**63 - 1)),
        top=draw(st.integers(1, 25)),
    )


def naive_users(model):
    alpha = dict(enumerate(model.attraction, start=1))
    by_position = {"CM": (), "DCM": "abandonment", "PBM": "examination_by_position"}[model.name]
    values = getattr(model, by_position) if by_position else ()
    return naive.Users(model.name, alpha, dict(enumerate(values, start=1)))


def naive_ranker(experiment):
    config = experiment.config
    return naive.BubbleRank(
        items=experiment.items,
        shown=experiment.shown,
        horizon=config.horizon or config.first_horizon,
        delta=config.delta,
        doubling=config.horizon is None and config.delta is None,
        freeze=config.freeze_decided,
    )


def naive_trajectory(experiment, steps, state):
    """Base lists, displayed lists (items from 0), clicks by the naive ranker, and the ranker."""
    ranker, users = naive_ranker(experiment), naive_users(experiment.model)
    ranker.base = [item + 1 for item in state.base]
    for i, j in ranker.s:
        ranker.s[i, j] = int(state.wins[i - 1, j - 1])
        ranker.n[i, j] = int(state.trials[i - 1, j - 1])
    key = naive.key_of(experiment.seed, experiment.query, experiment.run)
    rows = [ranker.step(state.step + t, key, users) for t in range(1, steps + 1)]
    base, shown, clicks = (np.array(column) for column in zip(*rows, strict=True))
    return base - 1, shown - 1, clicks, ranker


def naive_matrices(ranker):
    """s and n of the naive ranker as matrices over items from 0."""
    every = range(1, ranker.items + 1)
    return (
        np.array([[ranker.s[i, j] for j in every] for i in every]),
        np.array([[ranker.n[i, j] for j in every] for i in every]),
    )


def key_of(experiment):
    return stream_key(experiment.seed, experiment.query, experiment.run)
