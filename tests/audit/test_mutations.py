"""Thousands of runs with one row tampered with: each is found, and the finding names the row."""

import random
from functools import cache

import pytest

from bubblerank.rankers import RANKER_NAMES
from tests.audit import tampering
from tests.audit.runs import audit, random_run, violations
from tests.audit.tampering import COUNTED, EVERY, LEARNED, STRUCTURAL

MUTATIONS = 100
"""Of each kind, for BubbleRank; 14 kinds."""


@cache
def clean_run(seed, ranker="bubblerank"):
    run = random_run(5000 + seed, ranker, steps=100)
    found = audit(run)
    assert not violations(found, "structure", "completeness", "statistics", "recompute")
    return run


@cache
def decided(seed):
    return tampering.decided_pairs(clean_run(seed))


def tampered(way, chance, runs, ranker="bubblerank"):
    """A run tampered with in this way, and the step; runs to which it does not apply are left."""
    while True:
        seed = chance.randrange(runs)
        run = clean_run(seed, ranker).copy()
        if way is tampering.decided_pair:
            if not decided(seed):
                continue
            step, upper = chance.choice(decided(seed))
            shown = run.rows[step - 1]["displayed"]
            shown[upper], shown[upper + 1] = shown[upper + 1], shown[upper]
        else:
            step = way(run, chance)
        if step is not None and run != clean_run(seed, ranker):
            return run, step


def steps_named(found, *checks):
    return {finding.step for finding in violations(found, *checks)}


@pytest.mark.parametrize("way", EVERY, ids=lambda way: way.__name__)
def test_one_tampered_row_is_found_and_named(way):
    chance = random.Random(way.__name__)
    for _ in range(MUTATIONS):
        run, step = tampered(way, chance, 40)
        found = audit(run)
        assert step in steps_named(found), (way, run.config, step)
        if way not in COUNTED | LEARNED:
            assert steps_named(found, "recompute") == {step}


@pytest.mark.parametrize("way", sorted(STRUCTURAL, key=str), ids=lambda way: way.__name__)
def test_without_any_ground_truth_the_first_finding_of_structure_names_the_row(way):
    chance = random.Random(f"blind {way.__name__}")
    for _ in range(MUTATIONS // 3):
        run, step = tampered(way, chance, 40)
        found = audit(run, truth=False)
        assert min(steps_named(found, "structure")) == step, (way, run.config, step)


def test_without_ground_truth_the_coins_name_a_display_that_another_coin_drew():
    chance = random.Random(4)
    for _ in range(MUTATIONS):
        run, step = tampered(tampering.another_coin, chance, 40)
        found = audit(run, truth=False)
        named = steps_named(found, "recompute")
        assert min(named) == step


def test_without_ground_truth_a_flipped_click_of_a_pair_shows_in_the_statistics():
    chance = random.Random(5)
    flipped = 0
    while flipped < MUTATIONS:
        run = clean_run(chance.randrange(40)).copy()
        if run.config.freeze_decided:
            continue
        row = chance.choice(run.rows)
        uppers = range(row["step"] % 2, len(row["clicks"]) - 1, 2)
        if not uppers:
            continue
        place = chance.choice(uppers) + chance.randrange(2)
        row["clicks"][place] = not row["clicks"][place]
        flipped += 1
        assert audit(run, truth=False).outcomes["statistics"].failed == 1


@pytest.mark.parametrize("ranker", [name for name in RANKER_NAMES if name != "bubblerank"])
def test_tampering_with_other_rankers_is_found_too(ranker):
    ways = [way for way in EVERY if way not in LEARNED and way is not tampering.decided_pair]
    chance = random.Random(ranker)
    for number in range(MUTATIONS // 2):
        run, step = tampered(ways[number % len(ways)], chance, 15, ranker)
        assert step in steps_named(audit(run))


@pytest.mark.parametrize("ranker", RANKER_NAMES)
def test_another_seed_is_found(ranker):
    for seed in range(10):
        run = clean_run(seed, ranker)
        found = audit(run, seed=run.seed + 1)
        assert found.outcomes["recompute"].failed > 0
        if ranker == "bubblerank":
            assert audit(run, truth=False, seed=run.seed + 1).outcomes["recompute"].failed > 0


@pytest.mark.parametrize("truth", [True, False])
def test_no_false_alarm_on_clean_runs(truth):
    for seed in range(300):
        found = audit(random_run(9000 + seed, steps=60), truth)
        assert not violations(found, "structure", "completeness", "statistics", "recompute")
