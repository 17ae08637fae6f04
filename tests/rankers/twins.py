"""Problems made by hypothesis, and the comparison of a ranker's two paths on them."""

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from bubblerank.click_models import make_click_model
from bubblerank.closed_loop import Experiment, advance_compiled, advance_reference, begin
from bubblerank.config import RankerConfig
from bubblerank.rankers import policy

MODELS = ("CM", "DCM", "PBM")
HORIZONS = (1, 2, 3, 50, 10_000, 1_000_000)

chances = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 0.9, 1.0]))


@st.composite
def experiments(draw, ranker, max_shown=20, max_items=30):
    shown = draw(st.integers(2, max_shown))
    items = draw(st.one_of(st.just(shown), st.integers(shown, max_items)))
    by_item = st.lists(chances, min_size=items, max_size=items)
    by_position = st.lists(chances, min_size=shown, max_size=shown)
    model = make_click_model(
        draw(st.sampled_from(MODELS)), draw(by_item), draw(by_position), draw(by_position)
    )
    config = RankerConfig(positions=shown, horizon=draw(st.sampled_from(HORIZONS)))
    return Experiment(
        ranker, "q", model, config, run=draw(st.integers(0, 3)), seed=draw(st.integers(-9, 9))
    )


def rows(advance):
    return [
        (tuple(shown), tuple(clicked))
        for shown, clicked in zip(
            advance.displays.displayed.tolist(), advance.displays.clicked.tolist(), strict=True
        )
    ]


def assert_twins(experiment, steps, splits=()):
    """Both paths agree on every step, and blocks of steps give what one block gives."""
    ranker = policy(experiment.ranker)
    due = sorted({1, 2, steps // 3 + 1, steps})
    reference = advance_reference(experiment, begin(experiment), steps, due, displays=True)
    compiled = advance_compiled(experiment, begin(experiment), steps, due, displays=True)
    assert rows(compiled) == rows(reference)
    assert np.array_equal(compiled.displays.base, reference.displays.base)
    assert compiled.checkpoints == reference.checkpoints
    assert compiled.progress.card == reference.progress.card
    packed = ranker.pack(reference.progress.state)
    assert ranker.pack(compiled.progress.state) == packed
    assert ranker.pack(ranker.unpack(packed, experiment.config)) == packed
    assert all(type(number) is int and number >= 0 for number in packed)
    for displayed, _ in rows(compiled):
        assert len(set(displayed)) == len(displayed) == experiment.shown

    progress, in_blocks, checkpoints = begin(experiment), [], []
    bounds = [0, *sorted({split % steps for split in splits} - {0}), steps]
    for first, last in itertools.pairwise(bounds):
        block = advance_compiled(experiment, progress, last - first, due, displays=True)
        state = ranker.unpack(ranker.pack(block.progress.state), experiment.config)
        progress = type(block.progress)(state, block.progress.card)
        in_blocks += rows(block)
        checkpoints += block.checkpoints
    assert in_blocks == rows(reference)
    assert checkpoints == reference.checkpoints
    assert ranker.pack(progress.state) == packed


def easy_experiment(ranker, model="CM", shown=4, horizon=20_000, run=0):
    """Six items far apart, the production list upside down."""
    attraction = [0.02, 0.1, 0.25, 0.45, 0.7, 0.95]
    click_model = make_click_model(model, attraction, [0.5] * 6, [1.0, 0.9, 0.8, 0.7, 0.6, 0.5])
    return Experiment(
        ranker, "easy", click_model, RankerConfig(positions=shown, horizon=horizon), run=run
    )


def last_list(experiment, steps):
    progress = advance_compiled(experiment, begin(experiment), steps - 1).progress
    return rows(advance_compiled(experiment, progress, 1, displays=True))[0][0]


def first_lists(experiment, runs):
    """The list of step 1 in each of many runs."""
    return [
        rows(advance_compiled(replace(experiment, run=run), begin(experiment), 1, displays=True))[
            0
        ][0]
        for run in range(runs)
    ]
