from hypothesis import given, settings
from hypothesis import strategies as st

from bubblerank.closed_loop import advance_compiled, begin
from tests.rankers.twins import assert_twins, easy_experiment, experiments, rows


@settings(max_examples=15)
@given(experiments("baseline"), st.lists(st.integers(0, 40), max_size=3))
def test_the_kernel_equals_the_reference_step_for_step(experiment, splits):
    assert_twins(experiment, 40, splits)


def test_it_always_shows_the_top_of_the_production_list():
    experiment = easy_experiment("baseline")
    shown = rows(advance_compiled(experiment, begin(experiment), 50, displays=True))
    assert {displayed for displayed, _ in shown} == {(0, 1, 2, 3)}


def test_its_regret_is_that_of_the_production_list_at_every_step():
    experiment = easy_experiment("baseline")
    (row,) = advance_compiled(experiment, begin(experiment), 1000, [1000]).checkpoints
    missed = (1 - 0.02) * (1 - 0.1) * (1 - 0.25) * (1 - 0.45)
    best = (1 - 0.95) * (1 - 0.7) * (1 - 0.45) * (1 - 0.25)
    assert abs(row.regret / 1000 - (missed - best)) < 1e-12
