"""What a logged session may teach, readable: feedback ``logged`` and ``match``.

``bubblerank.kernels.replay`` does the same over many sessions.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bubblerank.coins import Coins
from bubblerank.config import RankerConfig
from bubblerank.rankers import bubble
from bubblerank.rankers.bubble import BubbleState
from bubblerank.rankers.policy import Choice

LOGGED, MATCH = "logged", "match"
MODES = (LOGGED, MATCH)


class Fed(NamedTuple):
    """A consumed session: the new state, its step t, the base list it met, and its coins.

    chances: the pairs that could have been exchanged; exchanges: those that were.
    """

    state: BubbleState
    step: int
    base: tuple[int, ...]
    chances: int
    exchanges: int


def reachable(state: BubbleState, config: RankerConfig, displayed: Sequence[int]) -> bool:
    """Whether BubbleRank could display this list in its next step, for some coins."""
    shown = config.shown(len(state.base))
    if len(displayed) != shown:
        return False
    expected = list(state.base[:shown])
    for upper in bubble.upper_positions(state.step + 1, shown):
        above, below = expected[upper], expected[upper + 1]
        if displayed[upper] == below and not bubble.item_beats(state, config, above, below):
            expected[upper], expected[upper + 1] = below, above
    if bubble.challenges_last(state.step + 1, shown, len(state.base)):
        last, hidden = expected[-1], displayed[-1]
        challenges = hidden in state.base[shown:]
        if challenges and not bubble.item_beats(state, config, last, hidden):
            expected[-1] = hidden
    return list(displayed) == expected


def feed_logged(
    state: BubbleState,
    config: RankerConfig,
    key: int,
    displayed: Sequence[int],
    clicks: Sequence[bool],
    step: int | None,
) -> Fed | None:
    """Learn from a list that was displayed, if it can be reached; None where it cannot.

    The step is the logged one, else one more than the sessions consumed so far.
    """
    step = state.step + 1 if step is None else step
    now = bubble.prepare(replace(state, step=step - 1), config)
    if not reachable(now, config, displayed):
        return None
    shown = len(displayed)
    hidden = bubble.challenger(now, config, Coins(key, step))
    if displayed[-1] != now.base[shown - 1] and displayed[-1] in now.base[shown:]:
        hidden = now.base[shown - 1]
    return _consume(state, now, config, Choice(tuple(displayed), hidden), clicks)


def feed_matching(
    state: BubbleState,
    config: RankerConfig,
    key: int,
    displayed: Sequence[int],
    clicks: Sequence[bool],
) -> Fed | None:
    """Learn from a list if the ranker's own coins draw the same one (Li et al., 2011)."""
    now = bubble.prepare(state, config)
    choice = bubble.decide(now, config, Coins(key, state.step + 1))
    if choice.displayed != tuple(displayed):
        return None
    return _consume(state, now, config, choice, clicks)


def _consume(
    before: BubbleState,
    now: BubbleState,
    config: RankerConfig,
    choice: Choice,
    clicks: Sequence[bool],
) -> Fed:
    pairs = [
        (now.base[upper], now.base[upper + 1], choice.displayed[upper] != now.base[upper])
        for upper in bubble.upper_positions(now.step + 1, len(choice.displayed))
        if not bubble.item_beats(now, config, now.base[upper], now.base[upper + 1])
    ]
    after = bubble.promote(bubble.learn(now, config, choice, clicks), config)
    return Fed(
        state=replace(after, step=before.step + 1),
        step=now.step + 1,
        base=now.base,
        chances=len(pairs),
        exchanges=sum(exchanged for _, _, exchanged in pairs),
    )
