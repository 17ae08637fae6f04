"""Coins: published vectors, the definition restated, compiled equals readable, fair bits."""

import functools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblerank import coins
from bubblerank.coins import Coins, Purpose, mix, purpose_key, stream_key
from bubblerank.kernels import coins as compiled
from tests import naive

WORDS = st.integers(0, 2**64 - 1)
STEPS = st.integers(0, 2**62)
PURPOSES = st.sampled_from(list(Purpose))
INDEXES = st.integers(0, 10**6)

FAILURE = 1e-6
"""The probability with which each statistical test would reject perfect coins."""
DEVIATIONS = NormalDist().inv_cdf(1 - FAILURE / 2)


def chi_square_bound(freedom):
    """The quantile of chi-square at 1 - FAILURE (Wilson and Hilferty, 1931)."""
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + NormalDist().inv_cdf(1 - FAILURE) * math.sqrt(spread)) ** 3


def test_mix_gives_the_published_outputs_of_splitmix64_for_seed_0():
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    golden = 0x9E3779B97F4A7C15
    assert [mix(golden * place % 2**64) for place in (1, 2, 3)] == published
    assert naive.splitmix64(0, 3) == published


def test_mix_gives_the_published_outputs_of_splitmix64_for_seed_1234567():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    golden = 0x9E3779B97F4A7C15
    assert [mix((1234567 + golden * k) % 2**64) for k in (1, 2, 3)] == published


@pytest.mark.parametrize(
    "seed, run, query, digest",
    [
        (0, 0, "", "f678e4f2c7b6947f"),
        (7, 0, "shoes", "b9fcd8d20be572f2"),
        (-1, 3, "größe 鞋", "9c18ac150463fb84"),
        (2**63 - 1, 10**6, "q", "677f83245889b6a9"),
    ],
)
def test_stream_keys_are_blake2b_of_tag_seed_run_and_query(seed, run, query, digest):
    """Digests by ``b2sum -l 64`` over the same bytes."""
    assert stream_key(seed, query, run).to_bytes(8, "little").hex() == digest


def test_vectors_of_a_step_that_never_change():
    """Word 0 and 1 of the key 0x0123456789ABCDEF, by a C program of three lines."""
    key = 0x0123456789ABCDEF
    inner = naive.mix((key + 3 * naive.GOLDEN) % 2**64)
    first = naive.mix((inner + 42 * naive.GOLDEN) % 2**64)
    second = naive.mix((first + naive.GOLDEN) % 2**64)
    step = Coins(key, 42)
    assert (first, second) == (0x7838B8931B368053, 0xF5AA746FE8F597EE)
    assert step.word(Purpose.CLICK, 0) == first
    assert step.word(Purpose.CLICK, 1) == second
    assert [step.draw(Purpose.CLICK, place) for place in range(4)] == [
        first & 0xFFFFFFFF,
        first >> 32,
        second & 0xFFFFFFFF,
        second >> 32,
    ]
    bits = [step.coin(Purpose.CLICK, place) for place in range(128)]
    assert sum(bit << place for place, bit in enumerate(bits)) == first | second << 64
    assert step.pick(Purpose.CLICK, 10) == (first & 0xFFFFFFFF) * 10 // 2**32


@given(WORDS, PURPOSES, STEPS, INDEXES)
def test_readable_words_coins_and_draws_follow_the_definition(key, purpose, step, index):
    got = Coins(key, step)
    assert got.word(purpose, index) == naive.word(key, purpose, step, index)
    assert got.coin(purpose, index) == naive.coin(key, purpose, step, index)
    assert got.draw(purpose, index) / 2**32 == naive.uniform(key, purpose, step, index)


@given(WORDS)
def test_compiled_mix_equals_the_readable_one(word):
    assert int(compiled.mix(np.uint64(word))) == mix(word)


@given(WORDS, PURPOSES, STEPS, INDEXES, st.integers(1, 1000))
def test_compiled_words_coins_draws_and_picks_equal_the_readable_ones(
    key, purpose, step, index, count
):
    readable = Coins(key, step)
    first = compiled.first_word(np.uint64(purpose_key(key, purpose)), step)
    first = np.uint64(first)
    assert int(first) == readable.word(purpose, 0)
    assert int(compiled.word(first, np.uint64(index))) == readable.word(purpose, index)
    assert bool(compiled.coin(first, index)) == readable.coin(purpose, index)
    assert int(compiled.draw(first, index)) == readable.draw(purpose, index)
    assert int(compiled.pick(first, count)) == readable.pick(purpose, count)


@given(WORDS, STEPS, st.integers(1, 1000))
def test_a_pick_is_within_its_range(key, step, count):
    assert 0 <= Coins(key, step).pick(Purpose.CHALLENGE, count) < count


@given(st.integers(-(2**63), 2**63 - 1), st.text(), st.integers(0, 2**31))
def test_keys_of_any_seed_query_and_run_are_words(seed, query, run):
    assert 0 <= stream_key(seed, query, run) < 2**64
    assert stream_key(seed, query, run) == stream_key(seed, query, run)


def test_even_a_broken_query_text_has_a_key():
    assert stream_key(0, "\ud800", 0) != stream_key(0, "\ud801", 0)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1])
def test_a_seed_of_more_than_64_bits_is_refused(seed):
    with pytest.raises(ValueError, match=f"seed must fit into 64 signed bits, got {seed}"):
        stream_key(seed, "q", 0)


def test_keys_differ_in_seed_query_run_and_purpose():
    keys = {
        purpose_key(stream_key(seed, query, run), purpose)
        for seed in range(-3, 4)
        for query in ("", "a", "b", "ab", "a ")
        for run in range(5)
        for purpose in Purpose
    }
    assert len(keys) == 7 * 5 * 5 * len(Purpose)


STEP_COUNT = 1 << 15


def words_of(key, purpose, index=0, steps=STEP_COUNT):
    return np.array([Coins(key, t).word(purpose, index) for t in range(steps)], dtype=np.uint64)


def bits_of(words):
    """A row a step, a column a bit."""
    return np.unpackbits(words.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1)


KEY = stream_key(2026, "statistics", 0)
NEIGHBOURS = {
    "the next step": lambda: stream()[1:],
    "the step after the next": lambda: stream()[2:],
    "another query": lambda: words_of(stream_key(2026, "statistict", 0), Purpose.EXCHANGE),
    "the next run": lambda: words_of(stream_key(2026, "statistics", 1), Purpose.EXCHANGE),
    "the next seed": lambda: words_of(stream_key(2027, "statistics", 0), Purpose.EXCHANGE),
    "the next purpose": lambda: words_of(KEY, Purpose.CHALLENGE),
    "the purpose of clicks": lambda: words_of(KEY, Purpose.CLICK),
    "the next index": lambda: words_of(KEY, Purpose.EXCHANGE, index=1),
}


@functools.cache
def stream():
    return words_of(KEY, Purpose.EXCHANGE)


def test_every_bit_is_balanced():
    shares = bits_of(stream()).mean(axis=0)
    bound = NormalDist().inv_cdf(1 - FAILURE / 2 / 64) * 0.5 / math.sqrt(STEP_COUNT)
    assert np.abs(shares - 0.5).max() < bound


def test_bits_of_one_word_are_independent_of_each_other():
    signs = 2.0 * bits_of(stream()) - 1
    products = signs.T @ signs / STEP_COUNT - np.eye(64)
    pairs = 64 * 63 / 2
    bound = NormalDist().inv_cdf(1 - FAILURE / 2 / pairs) / math.sqrt(STEP_COUNT)
    assert np.abs(products).max() < bound


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_every_bit_is_independent_of_every_bit_of(neighbour):
    other = NEIGHBOURS[neighbour]()
    signs = 2.0 * bits_of(stream()[: len(other)]) - 1
    products = signs.T @ (2.0 * bits_of(other) - 1) / len(other)
    bound = NormalDist().inv_cdf(1 - FAILURE / 2 / 64**2) / math.sqrt(len(other))
    assert np.abs(products).max() < bound


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_joint_draws_are_uniform_with(neighbour):
    """16 x 16 cells of the high bits of two draws: chi-square with 255 degrees of freedom."""
    other = NEIGHBOURS[neighbour]()
    cells = (stream()[: len(other)] >> np.uint64(60)) * np.uint64(16) + (other >> np.uint64(60))
    counts = np.bincount(cells.astype(int), minlength=256)
    expected = len(other) / 256
    assert ((counts - expected) ** 2 / expected).sum() < chi_square_bound(255)


def test_both_halves_of_a_word_are_uniform_and_independent():
    low, high = stream() & np.uint64(0xFFFFFFFF), stream() >> np.uint64(32)
    cells = (low >> np.uint64(28)) * np.uint64(16) + (high >> np.uint64(28))
    counts = np.bincount(cells.astype(int), minlength=256)
    expected = len(stream()) / 256
    assert ((counts - expected) ** 2 / expected).sum() < chi_square_bound(255)


@pytest.mark.parametrize("count", [2, 3, 7, 20])
def test_picks_are_uniform(count):
    picks = [Coins(KEY, step).pick(Purpose.CHALLENGE, count) for step in range(20_000)]
    counts, expected = np.bincount(picks, minlength=count), 20_000 / count
    assert ((counts - expected) ** 2 / expected).sum() < chi_square_bound(count - 1)


def test_a_pick_is_independent_of_the_coin_that_goes_with_it():
    """BubbleRank picks a challenger by the low half of a word, and exchanges by its bit 32."""
    steps = [Coins(KEY, step) for step in range(20_000)]
    cells = [
        2 * coins_of.pick(Purpose.CHALLENGE, 5) + coins_of.coin(Purpose.CHALLENGE, 32)
        for coins_of in steps
    ]
    counts, expected = np.bincount(cells, minlength=10), len(steps) / 10
    assert ((counts - expected) ** 2 / expected).sum() < chi_square_bound(9)


def test_one_bit_of_the_step_changes_half_of_the_word():
    """Avalanche, for 62 bits and 500 steps: 32 changed bits with an error of 4 / sqrt(500)."""
    changed = []
    for bit in range(62):
        for step in range(0, 5000, 10):
            one = Coins(KEY, step).word(Purpose.CLICK, 0)
            other = Coins(KEY, step ^ (1 << bit)).word(Purpose.CLICK, 0)
            changed.append((one ^ other).bit_count())
    means = np.array(changed).reshape(62, -1).mean(axis=1)
    bound = NormalDist().inv_cdf(1 - FAILURE / 2 / 62) * 4 / math.sqrt(500)
    assert np.abs(means - 32).max() < bound


def test_runs_of_equal_coins_are_as_long_as_a_fair_coin_makes_them():
    flips = bits_of(stream())[:, 0].astype(int)
    changes = np.count_nonzero(np.diff(flips))
    assert abs(changes - (STEP_COUNT - 1) / 2) < DEVIATIONS * math.sqrt(STEP_COUNT - 1) / 2


def test_the_purposes_keep_their_numbers():
    """They are part of the definition of every recorded display."""
    assert {purpose.name: int(purpose) for purpose in Purpose} == {
        "EXCHANGE": 1,
        "CHALLENGE": 2,
        "CLICK": 3,
        "SHUFFLE": 4,
        "PRIORITY": 5,
    }
    assert coins.DRAW_SCALE == 2**32
