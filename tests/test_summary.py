import math
import random

import numpy as np
import pytest

from bubblerank.summary import for_people, mean_and_error, summarise, with_error


def metric(ranker="bubblerank", model="CM", query="q", run=0, step=10, value=1.0):
    measures = {"regret": value, "violations": int(value), "mean_ndcg": value / 100}
    key = {"ranker": ranker, "click_model": model, "query": query, "run": run, "step": step}
    return {**key, **measures}


def test_means_and_errors_are_those_of_numpy():
    values = [random.Random(n).expovariate(1) for n in range(50)]
    mean, error = mean_and_error(values)
    assert mean == pytest.approx(np.mean(values))
    assert error == pytest.approx(np.std(values, ddof=1) / math.sqrt(50))


def test_one_value_has_no_error():
    assert mean_and_error([3.0]) == (3.0, None)


def test_only_the_step_asked_for_counts_and_groups_stay_apart():
    rows = [metric(value=value, run=run) for run, value in enumerate((2.0, 4.0))]
    rows += [metric(step=9, value=100.0), metric(model="PBM", value=7.0)]
    rows += [metric(ranker="baseline", value=1.0)]
    lines = summarise(rows, 10)
    assert [(line["click_model"], line["ranker"]) for line in lines] == [
        ("CM", "baseline"),
        ("CM", "bubblerank"),
        ("PBM", "bubblerank"),
    ]
    assert [line["regret"] for line in lines] == [1.0, 3.0, 7.0]
    assert [line["learners"] for line in lines] == [1, 2, 1]
    assert lines[1]["regret_error"] == 1.0
    assert lines[0]["regret_error"] is None


def test_the_order_of_rows_changes_nothing():
    rng = random.Random(0)
    rows = [metric(query=str(n), value=rng.random() * 1e6) for n in range(100)]
    assert summarise(rows, 10) == summarise(rows[::-1], 10)


@pytest.mark.parametrize(
    ("mean", "error", "shown"),
    [
        (1234.5678, 12.345, "1,235 ± 12"),
        (1234.5678, 0.12, "1,234.57 ± 0.12"),
        (0.0, 0.0, "0 ± 0"),
        (9.0, None, "9"),
        (0.82344, None, "0.8234"),
        (123456.7, None, "123,457"),
        (1e-9, None, "0.000000"),
        (28.97, 0.0, "28.97 ± 0.00"),
        (-3.25, 0.5, "-3.25 ± 0.50"),
    ],
)
def test_numbers_have_as_many_digits_as_their_error_allows(mean, error, shown):
    assert with_error(mean, error) == shown


def test_people_see_a_mean_and_its_error_in_one_cell():
    line = summarise([metric(run=0, value=2.0), metric(run=1, value=4.0)], 10)[0]
    assert for_people(line) == {
        "click model": "CM",
        "ranker": "bubblerank",
        "learners": 2,
        "regret": "3.0 ± 1.0",
        "violations": "3.0 ± 1.0",
        "mean NDCG": "0.030 ± 0.010",
    }
