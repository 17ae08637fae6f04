"""A clean run passes, whatever the ranker and its settings; and both versions agree."""

import random

import pytest

from bubblerank.config import RankerConfig
from bubblerank.metrics import inversions
from bubblerank.rankers import RANKER_NAMES
from bubblerank.simulation import simulate
from tests.audit.runs import audit, random_problem, random_run, small_run, violations


def failures(found):
    """Failed checks; a comparison ranker may well be unsafe."""
    return {
        name: outcome.failed
        for name, outcome in found.outcomes.items()
        if outcome.failed and name != "safety"
    }


@pytest.mark.parametrize("ranker", RANKER_NAMES)
def test_every_ranker_passes_all_but_safety(ranker):
    for seed in range(12):
        run = random_run(seed, ranker)
        found = audit(run)
        assert failures(found) == {}
        assert not violations(found, "structure", "completeness", "statistics", "recompute")
        assert found.outcomes["recompute"].missing is None
        assert found.outcomes["recompute"].checked == len(run.rows)


@pytest.mark.parametrize("seed", range(60))
def test_bubblerank_passes_under_random_settings(seed):
    found = audit(random_run(1000 + seed), truth=seed % 2 == 0)
    assert failures(found) == {}
    for name in ("structure", "completeness", "statistics", "recompute"):
        assert found.outcomes[name].missing is None
        assert found.outcomes[name].checked > 0


@pytest.mark.parametrize("seed", range(12))
def test_the_readable_version_says_the_same(seed):
    run = random_run(2000 + seed)
    for truth in (True, False):
        assert audit(run, truth, readable=True) == audit(run, truth)


def test_the_readable_version_says_the_same_of_tampered_runs():
    chance = random.Random(7)
    for seed in range(25):
        run = random_run(3000 + seed, steps=120)
        for _ in range(3):
            row = chance.choice(run.rows)
            kind = chance.choice(["displayed", "base", "clicks"])
            if kind == "clicks":
                row["clicks"] = [chance.random() < 0.5 for _ in row["clicks"]]
            else:
                chance.shuffle(row[kind])
        for truth in (True, False):
            assert audit(run, truth, readable=True) == audit(run, truth)


@pytest.mark.parametrize("group_rows", [1, 7, 64])
def test_rows_in_many_row_groups_and_in_any_order_are_put_together(group_rows):
    run = random_run(5)
    whole = audit(run)
    random.Random(3).shuffle(run.rows)
    assert audit(run, group_rows=group_rows) == whole


def test_violations_in_the_first_steps_equal_those_in_the_metrics():
    chance = random.Random(11)
    rankers = [name for name in RANKER_NAMES if name != "baseline"]
    seen = 0
    for query in range(6):
        problem = random_problem(chance, shown=10, items=10)
        metrics = simulate([problem], rankers, 1000, seed=query, checkpoints=[100, 1000])
        for row in metrics.to_pylist():
            run = small_run(problem, RankerConfig(horizon=1000), row["ranker"], 1000, query)
            counts = audit(run, checks=("safety",)).exposure.violations
            assert counts[row["step"]] == row["violations"]
            assert counts[0] == counts[1000]
            seen += row["violations"] > 0 and row["ranker"] != "bubblerank"
    assert seen > 10


def test_the_constraint_is_on_half_of_k_as_a_real_number():
    """K = 3, R_0 sorted: up to 1.5 inversions are allowed, so 1 passes and 2 do not."""
    problem = random_problem(random.Random(1), shown=3, items=3)
    problem = type(problem)("q", ["a", "b", "c"], "CM", [0.9, 0.5, 0.1])
    run = small_run(problem, RankerConfig(horizon=10), "baseline", 6)
    orders = ["abc", "bac", "bca", "cba", "acb", "cab"]
    for row, order in zip(run.rows, orders, strict=True):
        row["displayed"] = list(order)
    found = audit(run, checks=("safety",))
    attraction = dict(zip("abc", problem.attraction, strict=True))
    expected = [
        step
        for step, order in enumerate(orders, start=1)
        if inversions([attraction[item] for item in order], range(3)) > 1.5
    ]
    assert [finding.step for finding in violations(found)] == expected == [3, 4, 6]
    assert found.exposure.first_step == 3
    assert found.exposure.farthest == 2


def test_ties_are_no_inversions():
    problem = type(random_problem(random.Random(1)))("q", ["a", "b", "c"], "CM", [0.5, 0.5, 0.5])
    run = small_run(problem, RankerConfig(horizon=10), "toprank", 50)
    assert audit(run).outcomes["safety"].failed == 0
