import math
import random

import pytest

from bubblerank.fairness import ALARM, Fairness


def exact_p_value(chances, exchanges):
    """How often fair coins are at least as far from one half, by adding up the binomial."""
    far = abs(2 * exchanges - chances)
    ways = sum(math.comb(chances, k) for k in range(chances + 1) if abs(2 * k - chances) >= far)
    return ways / 2**chances


@pytest.mark.parametrize("chances", [100, 401, 1000])
def test_the_p_value_is_near_that_of_the_exact_binomial_test(chances):
    for exchanges in range(chances // 2 - 30, chances // 2 + 30, 3):
        exact = exact_p_value(chances, exchanges)
        assert Fairness(chances, exchanges).p_value == pytest.approx(exact, rel=0.15, abs=1e-4)


def test_both_directions_are_judged_alike():
    assert Fairness(1000, 400).p_value == Fairness(1000, 600).p_value


def test_fair_coins_are_not_warned_of():
    """2,000 logs of fair coins: more than 3 alarms have a probability below 1e-4."""
    rng = random.Random(5)
    logs = [Fairness(500, rng.getrandbits(500).bit_count()) for _ in range(2000)]
    assert sum(log.warning is not None for log in logs) <= 3


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_unfair_coins_are_warned_of_with_the_numbers(share):
    fairness = Fairness(1000, int(1000 * share))
    assert fairness.share == share
    assert fairness.p_value < ALARM
    assert f"{int(1000 * share):,} of 1,000 open pairs were exchanged" in fairness.warning


@pytest.mark.parametrize("chances", [0, 1, 5, 10])
def test_a_few_chances_prove_nothing(chances):
    assert Fairness(chances, 0).warning is None


def test_no_chances_have_no_share_and_no_doubt():
    assert Fairness(0, 0).share == 0.0
    assert Fairness(0, 0).p_value == 1.0
