"""States as bytes: round trips, golden bytes, and errors for everything that is no state."""

import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubblerank import state_codec, varints
from bubblerank.closed_loop import advance_compiled, advance_reference, begin
from bubblerank.config import RankerConfig
from bubblerank.rankers import RANKER_NAMES, policy
from bubblerank.rankers.bubble import BubbleState
from tests.core import worlds

CONFIG = RankerConfig(horizon=1000)
by_ranker = pytest.mark.parametrize("ranker", RANKER_NAMES)


@pytest.fixture(scope="module", autouse=True)
def little_memory():
    """A forged state that asks for much memory must fail its test, not the machine."""
    size = Path("/proc/self/statm")
    if not size.exists():
        yield
        return
    pages = int(size.read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    allowed = pages * resource.getpagesize() + (2 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def crc32(data):
    """Bit by bit, from the polynomial of ISO 3309."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB88320 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def framed(body):
    return body + crc32(body).to_bytes(4, "little")


def varint(number):
    """Zigzag and base 128, by arithmetic."""
    folded = 2 * number if number >= 0 else -2 * number - 1
    digits = []
    while True:
        folded, digit = divmod(folded, 128)
        digits.append(digit + (128 if folded else 0))
        if not folded:
            return bytes(digits)


def random_state(ranker, steps, seed=0, model="DCM", positions=None):
    experiment = worlds.hand_made(
        model, ranker, horizon=1000, seed=seed, positions=positions, delta=None
    )
    return experiment, advance_reference(experiment, begin(experiment), steps).progress


@by_ranker
@pytest.mark.parametrize("positions", [None, 4])
@pytest.mark.parametrize("steps", [0, 1, 2, 37, 300])
def test_a_state_comes_back_and_goes_on_as_if_never_written(ranker, positions, steps):
    experiment, progress = random_state(ranker, steps, seed=steps, positions=positions)
    data = state_codec.encode(ranker, progress.state)
    name, state = state_codec.decode(data, experiment.config)
    assert name == ranker
    assert state.step == steps
    assert policy(ranker).pack(state) == policy(ranker).pack(progress.state)
    assert state_codec.encode(ranker, state) == data
    again = type(progress)(state, progress.card)
    one, other = (advance_reference(experiment, p, 20, displays=True) for p in (progress, again))
    np.testing.assert_array_equal(one.displays.displayed, other.displays.displayed)
    assert one.progress.card == other.progress.card


@given(worlds.experiments(), st.integers(0, 300))
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_any_bubblerank_state_comes_back(experiment, steps):
    state = advance_compiled(experiment, begin(experiment), steps).progress.state
    _, back = state_codec.decode(state_codec.encode("bubblerank", state), experiment.config)
    assert (back.base, back.step, back.horizon) == (state.base, state.step, state.horizon)
    np.testing.assert_array_equal(back.wins, state.wins)
    np.testing.assert_array_equal(back.trials, state.trials)


@pytest.mark.parametrize("model", ["CM", "DCM", "PBM"])
def test_ten_items_after_five_million_steps_take_less_than_600_bytes(model):
    experiment = worlds.hand_made(model, horizon=5_000_000)
    state = advance_compiled(experiment, begin(experiment), 5_000_000).progress.state
    assert len(state_codec.encode("bubblerank", state)) < 600


def test_the_golden_bytes_of_version_1_of_bubblerank():
    """Written by hand: base list (1, 0, 2) after 300 steps; 0 won 5 of 14 against 1, 1 beat 2."""
    wins, trials = np.zeros((2, 3, 3), dtype=np.int64)
    wins[0, 1], wins[1, 0], wins[1, 2], wins[2, 1] = -4, 4, 2, -2
    trials[0, 1] = trials[1, 0] = 14
    trials[1, 2] = trials[2, 1] = 2
    state = BubbleState((1, 0, 2), wins, trials, step=300, horizon=1000)
    golden = bytes.fromhex(
        "01 01"  # version, bubblerank
        "d804 d00f"  # step 300, horizon 1000: twice the number, 7 bits a byte
        "06 020004"  # 3 items, base list 1 0 2
        "04"  # 2 touched pairs of (0, 1), (0, 2), (1, 2)
        "00 0a 12"  # none skipped, won 5, lost 9
        "02 04 00"  # one skipped, won 2, lost 0
        "25d76366"  # CRC-32
    )
    assert framed(golden[:-4]) == golden
    assert state_codec.encode("bubblerank", state) == golden
    name, back = state_codec.decode(golden, CONFIG)
    assert name == "bubblerank"
    assert (back.base, back.step, back.horizon) == ((1, 0, 2), 300, 1000)
    np.testing.assert_array_equal(back.wins, wins)
    np.testing.assert_array_equal(back.trials, trials)


def test_the_golden_bytes_of_version_1_of_the_baseline():
    """Step 300 of 10 items."""
    golden = framed(bytes.fromhex("01 05 d804 14"))
    name, state = state_codec.decode(golden, CONFIG)
    assert (name, state.step, state.items) == ("baseline", 300, 10)
    assert state_codec.encode("baseline", state) == golden


def test_the_golden_bytes_of_version_1_of_cascade_klucb():
    """Step 5 of 2 items: 3 clicks and 1 miss of the first, 0 and 64 of the second."""
    golden = framed(bytes.fromhex("01 02 0a 04 06 00 02 8001"))
    name, state = state_codec.decode(golden, CONFIG)
    assert (name, state.step) == ("cascade-klucb", 5)
    assert (state.clicks, state.observations) == ((3, 0), (4, 64))
    assert state_codec.encode("cascade-klucb", state) == golden


def test_the_golden_bytes_of_version_1_of_toprank():
    """Step 7 of 3 items: 0 won 6 of 7 against 1, which is below it; 1 lost 3 of 3 against 2."""
    golden = framed(bytes.fromhex("01 04 0e 06 0402 0c 020c 00 06"))
    name, state = state_codec.decode(golden, CONFIG)
    assert (name, state.step) == ("toprank", 7)
    np.testing.assert_array_equal(state.wins, [[0, 5, 0], [-5, 0, -3], [0, 3, 0]])
    np.testing.assert_array_equal(state.trials, [[0, 7, 0], [7, 0, 3], [0, 3, 0]])
    assert np.argwhere(state.below).tolist() == [[1, 0], [1, 2]]
    assert state_codec.encode("toprank", state) == golden


def test_the_golden_bytes_of_version_1_of_batchrank():
    """Step 9 of 3 items: 1 alone on top in stage 2; 0 and 2 below it, shown 4 and 5 times."""
    golden = framed(
        bytes.fromhex(
            "01 03 12 06 04"  # step 9, 3 items, 2 batches
            "02 04 02 0c"
            "02 0c"  # 1 position, stage 2, 1 item, 6 times; item 1, 3 clicks
            "04 00 04 08"
            "00 00"
            "04 0a"  # 2 positions, stage 0, 2 items, 4 times; 0 and 2
        )
    )
    name, state = state_codec.decode(golden, CONFIG)
    assert (name, state.step, state.items) == ("batchrank", 9, 3)
    top, rest = state.batches
    assert (top.length, top.stage, top.items, top.shown, top.clicks) == (1, 2, (1,), (6,), (3,))
    assert (rest.length, rest.stage, rest.items) == (2, 0, (0, 2))
    assert (rest.shown, rest.clicks) == ((4, 5), (0, 2))
    assert state_codec.encode("batchrank", state) == golden


@pytest.mark.parametrize(
    "ranker, numbers",
    [
        ("bubblerank", [1, 1, 0, 0]),
        ("bubblerank", [1, 1, 2**40, 0]),
        ("bubblerank", [9, 9, 2, 0, 0, 0]),
        ("bubblerank", [9, 9, 2, 0, 1, 1, 0, 10, 0]),
        ("bubblerank", [2**70, 9, 1, 0, 0]),
        ("bubblerank", [9, 9, 3, 0, 1, 2, 2, 2**63 - 1, 0, 1, 2**63 - 1, 1, 0]),
        ("baseline", [9, 0]),
        ("cascade-klucb", [9, 0]),
        ("batchrank", [9, 3, 1, 2, 0, 0, 4]),
        ("batchrank", [9, 0, 0]),
        ("toprank", [9, 0, 0]),
        ("toprank", [9, 2, 1, 0, 2**63 - 1, 1]),
        ("toprank", [9, 3, 2, 2**63 - 1, 1, 1, 2**63 - 1, 1, 1]),
        ("toprank", [9, 10**9, 0]),
    ],
)
def test_numbers_that_no_ranker_writes_are_refused(ranker, numbers):
    code = {"bubblerank": 1, "cascade-klucb": 2, "batchrank": 3, "toprank": 4, "baseline": 5}
    body = bytes([1, code[ranker]]) + b"".join(map(varint, numbers))
    with pytest.raises(ValueError, match=f"state of {ranker} is corrupted"):
        state_codec.decode(framed(body), CONFIG)


@by_ranker
def test_codes_of_rankers_never_change(ranker):
    codes = {"bubblerank": 1, "cascade-klucb": 2, "batchrank": 3, "toprank": 4, "baseline": 5}
    _, progress = random_state(ranker, 3)
    data = state_codec.encode(ranker, progress.state)
    assert data[:2] == bytes([1, codes[ranker]])
    assert data[-4:] == crc32(data[:-4]).to_bytes(4, "little")


def test_another_version_is_refused_by_its_number():
    _, progress = random_state("bubblerank", 5)
    body = b"\x02" + state_codec.encode("bubblerank", progress.state)[1:-4]
    with pytest.raises(ValueError, match="layout version 2, this release reads version 1"):
        state_codec.decode(framed(body), CONFIG)


def test_an_unknown_ranker_is_refused_by_its_code():
    with pytest.raises(ValueError, match="unknown ranker, code 99"):
        state_codec.decode(framed(bytes([1, 99, 0, 0])), CONFIG)


@by_ranker
def test_every_truncation_is_refused(ranker):
    _, progress = random_state(ranker, 60)
    data = state_codec.encode(ranker, progress.state)
    for length in range(len(data)):
        with pytest.raises(ValueError, match=r"truncated|corrupted"):
            state_codec.decode(data[:length], CONFIG)


@by_ranker
def test_every_flipped_bit_is_refused(ranker):
    _, progress = random_state(ranker, 60)
    data = state_codec.encode(ranker, progress.state)
    for place in range(len(data)):
        for bit in range(8):
            broken = bytearray(data)
            broken[place] ^= 1 << bit
            with pytest.raises(ValueError, match=r"version|corrupted"):
                state_codec.decode(bytes(broken), CONFIG)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data):
    with pytest.raises(ValueError):
        state_codec.decode(data, CONFIG)


@by_ranker
@given(data=st.binary(max_size=40))
def test_random_bodies_with_a_right_checksum_are_a_state_or_refused(ranker, data):
    check_body(ranker, data)


SMALL = st.integers(-2, 9)
LARGE = st.sampled_from([2**31, 2**62, 2**63 - 1, 2**63, 2**64, 2**70, -(2**63), -(2**70)])


@by_ranker
@given(numbers=st.lists(st.one_of(SMALL, SMALL, SMALL, LARGE), max_size=20))
def test_random_numbers_with_a_right_checksum_are_a_state_or_refused(ranker, numbers):
    check_body(ranker, b"".join(map(varint, numbers)))


def check_body(ranker, body):
    code = state_codec.encode(ranker, random_state(ranker, 0)[1].state)[1]
    try:
        name, state = state_codec.decode(framed(bytes([1, code]) + body), CONFIG)
    except ValueError:
        return
    assert name == ranker
    assert state.step >= 0
    assert state_codec.decode(state_codec.encode(name, state), CONFIG)[0] == ranker


@given(st.lists(st.integers(-(2**80), 2**80)))
def test_varints_come_back_and_are_zigzag_base_128(numbers):
    data = varints.encode(numbers)
    assert data == b"".join(map(varint, numbers))
    assert varints.decode(data) == numbers


def test_a_varint_that_is_cut_off_is_refused():
    with pytest.raises(ValueError, match="cut off"):
        varints.decode(b"\x01\x80")
