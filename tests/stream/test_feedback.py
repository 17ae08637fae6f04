import random

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bubblerank.coins import Coins, Purpose, purpose_key, stream_key
from bubblerank.config import RankerConfig
from bubblerank.kernels import bubble as bubble_kernel
from bubblerank.kernels import replay as kernel
from bubblerank.rankers import bubble
from bubblerank.stream.feedback import feed_logged, feed_matching, reachable


@st.composite
def worlds(draw):
    """(items, settings, matching, seed of the log); some dozens of clicks decide a pair."""
    items = draw(st.integers(1, 10))
    shown = draw(st.integers(1, min(8, items)))
    kind = draw(st.sampled_from(["horizon", "delta", "doubling"]))
    freeze = draw(st.booleans())
    config = {
        "horizon": RankerConfig(shown, horizon=draw(st.integers(1, 50)), freeze_decided=freeze),
        "delta": RankerConfig(shown, delta=draw(st.floats(0.1, 0.9)), freeze_decided=freeze),
        "doubling": RankerConfig(
            shown, first_horizon=draw(st.integers(1, 20)), freeze_decided=freeze
        ),
    }[kind]
    return items, config, draw(st.booleans()), draw(st.integers(0, 2**32))


def logged_sessions(items, config, matching, seed, count=80):
    """Sessions one by one, each after the reader has told what became of the one before."""
    rng = random.Random(seed)
    key = stream_key(3, "q", 0)
    shown = config.shown(items)
    state = bubble.start(items, config)
    for number in range(count):
        now = bubble.prepare(state, config)
        coins = Coins(key if matching and rng.random() < 0.7 else 99 + number, now.step + 1)
        displayed = bubble.decide(now, config, coins).displayed
        fate = rng.random()
        if fate < 0.1:
            displayed = tuple(rng.sample(range(items), shown))
        elif fate < 0.15:
            displayed = (-1,) * shown
        clicks = [rng.random() < 0.8 / (1 + max(0, item)) for item in displayed]
        step = rng.randint(0, 60) if rng.random() < 0.2 else None
        state = (yield displayed, clicks, step) or state


def feed_readable(items, config, matching, seed):
    key = stream_key(3, "q", 0)
    state = bubble.start(items, config)
    log = logged_sessions(items, config, matching, seed)
    sessions, fates, session = [], [], next(log)
    while session is not None:
        displayed, clicks, step = session
        sessions.append(session)
        fed = None
        if displayed[0] >= 0 and matching:
            fed = feed_matching(state, config, key, displayed, clicks)
        elif displayed[0] >= 0:
            fed = feed_logged(state, config, key, displayed, clicks, step)
        fates.append(fed)
        state = fed.state if fed else state
        try:
            session = log.send(state)
        except StopIteration:
            session = None
    return sessions, fates, state


@settings(max_examples=150)
@example((8, RankerConfig(3, first_horizon=2), False, 1))
@given(worlds())
def test_the_kernel_does_as_the_readable_rules_session_for_session(world):
    items, config, matching, _ = world
    sessions, fates, state = feed_readable(*world)
    key = stream_key(3, "q", 0)
    start = bubble.start(items, config)
    arrays = bubble_kernel.to_arrays(start)
    verdicts = kernel.make_verdicts(len(sessions), items)
    log = kernel.Log(
        np.array([displayed for displayed, _, _ in sessions], dtype=np.int64),
        np.arange(len(sessions), dtype=np.int32),
        np.array([clicks for _, clicks, _ in sessions], dtype=np.uint8),
        np.array([-1 if step is None else step for _, _, step in sessions], dtype=np.int64),
    )
    kernel.replay(
        arrays,
        bubble_kernel.make_settings(config, start.horizon),
        np.uint64(purpose_key(key, Purpose.EXCHANGE)),
        np.uint64(purpose_key(key, Purpose.CHALLENGE)),
        log,
        verdicts,
        matching,
    )
    fed = [fate for fate in fates if fate]
    assert len(sessions) == len(fates) == 80
    assert verdicts.step.tolist() == [fate.step if fate else 0 for fate in fates]
    assert [tuple(verdicts.base[n]) for n, f in enumerate(fates) if f] == [f.base for f in fed]
    assert verdicts.coins.tolist() == [sum(f.chances for f in fed), sum(f.exchanges for f in fed)]
    assert bubble.pack(bubble_kernel.from_arrays(arrays)) == bubble.pack(state)


@given(worlds(), st.integers(0, 2**32))
def test_every_list_that_the_ranker_draws_is_reachable_and_fed(world, coin_key):
    _, config, _, _ = world
    state = feed_readable(*world)[2]
    now = bubble.prepare(state, config)
    choice = bubble.decide(now, config, Coins(coin_key, now.step + 1))
    assert reachable(now, config, choice.displayed)
    clicks = [True] * len(choice.displayed)
    key = stream_key(3, "q", 0)
    fed = feed_logged(state, config, key, choice.displayed, clicks, None)
    assert fed is not None
    assert (fed.step, fed.state.step) == (state.step + 1, state.step + 1)
    own = bubble.decide(now, config, Coins(key, now.step + 1))
    matched = feed_matching(state, config, key, choice.displayed, clicks)
    assert (matched is not None) == (own.displayed == choice.displayed)


@settings(max_examples=60)
@given(worlds(), st.data())
def test_a_reachable_list_is_the_base_with_some_allowed_exchanges(world, data):
    items, config, _, _ = world
    now = bubble.prepare(feed_readable(*world)[2], config)
    shown = config.shown(items)
    allowed = {now.base[:shown]}
    for upper in bubble.upper_positions(now.step + 1, shown):
        above, below = now.base[upper], now.base[upper + 1]
        if not bubble.item_beats(now, config, above, below):
            allowed |= {_exchange(known, upper) for known in allowed}
    if bubble.challenges_last(now.step + 1, shown, items):
        last = now.base[shown - 1]
        open_items = [x for x in now.base[shown:] if not bubble.item_beats(now, config, last, x)]
        allowed |= {(*known[:-1], item) for known in allowed for item in open_items}
    guess = data.draw(st.sampled_from(sorted(allowed)) | st.permutations(range(items)))
    guess = tuple(guess[:shown])
    assert reachable(now, config, guess) == (guess in allowed)


def _exchange(displayed, upper):
    changed = list(displayed)
    changed[upper], changed[upper + 1] = changed[upper + 1], changed[upper]
    return tuple(changed)
