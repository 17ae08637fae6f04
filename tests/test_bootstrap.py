import numpy as np
import pytest
from scipy import stats

from bubblerank.bootstrap import MIN_QUERIES, ratio_over_queries


def test_the_interval_is_scipys_percentile_interval():
    draw = np.random.default_rng(1)
    wholes = draw.gamma(2.0, size=60)
    parts = 0.2 * wholes + 0.05 * draw.normal(size=60)
    found = ratio_over_queries(parts, wholes, resamples=20_000)
    theirs = stats.bootstrap(
        (parts, wholes),
        lambda part, whole, axis: part.sum(axis=axis) / whole.sum(axis=axis),
        paired=True,
        method="percentile",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(2),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert found.value == pytest.approx(parts.sum() / wholes.sum())
    # Quantiles of 20,000 draws wander by about a hundredth of the interval.
    assert found.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert found.high == pytest.approx(theirs.high, abs=0.05 * width)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    draw = np.random.default_rng(3)
    covered = 0
    for trial in range(300):
        gains = 0.1 + 0.2 * draw.normal(size=40)
        found = ratio_over_queries(gains, np.ones(40), seed=trial, resamples=500)
        covered += found.low <= 0.1 <= found.high
    # A true coverage of 93 % (percentile intervals of 40 values) leaves this band once in 10,000.
    assert 0.87 * 300 <= covered <= 0.99 * 300


def test_the_same_seed_gives_the_same_interval():
    parts = np.arange(20.0)
    one, again, other = (ratio_over_queries(parts, parts + 1, seed=s) for s in (5, 5, -6))
    assert one == again
    assert one.value == other.value
    assert one.low != other.low


@pytest.mark.parametrize(
    ("parts", "wholes"),
    [([0.1] * (MIN_QUERIES - 1), [1.0] * (MIN_QUERIES - 1)), ([0.0] * 20, [0.0] * 20), ([], [])],
    ids=["few queries", "nothing to compare with", "none"],
)
def test_without_enough_evidence_there_is_no_number(parts, wholes):
    found = ratio_over_queries(parts, wholes)
    assert not found.enough
    assert (found.value, found.low, found.high) == (None, None, None)
    assert "not enough evidence" in found.text()


def test_unlike_lengths_are_refused():
    with pytest.raises(ValueError, match="must be alike"):
        ratio_over_queries([1.0], [1.0, 2.0])


def test_refits_take_their_bias_off_and_their_spread_into_the_interval():
    draw = np.random.default_rng(4)
    wholes = np.ones(50)
    gains = 0.3 + 0.1 * draw.normal(size=50)
    shifts = np.linspace(0.02, 0.06, 9)[:, None]
    refits = gains + shifts, np.ones((9, 50))
    plain = ratio_over_queries(gains, wholes)
    found = ratio_over_queries(gains, wholes, refits=refits)
    assert found.value == pytest.approx(plain.value - 0.04)
    assert found.low < plain.low - 0.03
    assert found.high - found.low > plain.high - plain.low


def test_refits_that_differ_in_nothing_change_nothing():
    gains = np.random.default_rng(5).normal(size=30)
    wholes = np.full(30, 2.0)
    refits = np.tile(gains, (4, 1)), np.tile(wholes, (4, 1))
    plain = ratio_over_queries(gains, wholes, resamples=20_000)
    found = ratio_over_queries(gains, wholes, refits=refits, resamples=20_000)
    assert found.value == pytest.approx(plain.value)
    assert found.low == pytest.approx(plain.low, abs=0.02)
    assert found.high == pytest.approx(plain.high, abs=0.02)
