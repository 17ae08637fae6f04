"""BubbleRank replayed from its displays: which rows depart, and what it knows after each.

Two versions of one interface: ``ReadableReplay`` takes the functions of the readable ranker,
``CompiledReplay`` the kernel, and they agree to the bit.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np

from bubblerank.audit.finding import MOST_FINDINGS
from bubblerank.audit.rows import Rows
from bubblerank.coins import Coins, Purpose, purpose_key
from bubblerank.config import RankerConfig
from bubblerank.rankers import bubble
from bubblerank.rankers.bubble import BubbleState
from bubblerank.rankers.policy import Choice


class Reason(IntEnum):
    """Why BubbleRank cannot have displayed a list."""

    FINE = 0
    FAR = 1
    PARITY = 2
    DECIDED = 3


class Slip(NamedTuple):
    """A row that departs from the replay.

    base_off: its base list is not the one that the statistics give. reason, place: why its list
    cannot follow from ``base``, and at which position (from 0). drawn: the list that the coins
    draw, where they are known and draw another.
    """

    row: int
    base_off: bool
    reason: Reason
    place: int
    base: tuple[int, ...]
    drawn: tuple[int, ...] | None


class Departures(NamedTuple):
    """The first slips, and how many rows depart in structure and from the coins."""

    slips: list[Slip]
    structure: int
    drawn: int


class Replayer(Protocol):
    """Takes rows in order and keeps the ranker's state."""

    def feed(self, rows: Rows, first: int, last: int) -> Departures:
        """Replay and learn from rows ``first`` to ``last`` - 1."""

    def state(self) -> BubbleState:
        """What the ranker knows now; its step is not kept."""


def judge(state: BubbleState, config: RankerConfig, displayed: Sequence[int]) -> tuple[Reason, int]:
    """Why BubbleRank cannot display this list in its next step, and the position; or FINE.

    Lines 5-13: only neighbours of the step's parity may be exchanged, and only if the upper
    item does not beat the lower; with hidden items, one that the last item does not beat may
    stand in its place in a step whose parity leaves it alone.
    """
    base, shown = state.base, len(displayed)
    parity = (state.step + 1) % 2
    place = 0
    while place < shown:
        item = displayed[place]
        if item == base[place]:
            place += 1
        elif place + 1 < shown and (item, displayed[place + 1]) == (base[place + 1], base[place]):
            if place % 2 != parity:
                return Reason.PARITY, place
            if bubble.item_beats(state, config, base[place], item):
                return Reason.DECIDED, place
            place += 2
        elif place < shown - 1 or item not in base[shown:]:
            return Reason.FAR, place
        elif not bubble.challenges_last(state.step + 1, shown, len(base)):
            return Reason.PARITY, place
        elif bubble.item_beats(state, config, base[place], item):
            return Reason.DECIDED, place
        else:
            place += 1
    return Reason.FINE, 0


class ReadableReplay:
    """The reference."""

    def __init__(self, start: BubbleState, config: RankerConfig, key: int | None) -> None:
        self._state, self._config, self._key = start, config, key

    def feed(self, rows: Rows, first: int, last: int) -> Departures:
        """See ``Replayer``."""
        slips: list[Slip] = []
        structure = drawn_off = 0
        for row in range(first, last):
            if not rows.usable[row]:
                continue
            slip = self._step(rows, row)
            departs = slip.base_off or slip.reason != Reason.FINE
            structure += departs
            drawn_off += slip.drawn is not None
            if (departs or slip.drawn is not None) and len(slips) < MOST_FINDINGS:
                slips.append(slip)
        return Departures(slips, structure, drawn_off)

    def _step(self, rows: Rows, row: int) -> Slip:
        step, config = int(rows.step[row]), self._config
        now = bubble.prepare(replace(self._state, step=step - 1), config)
        displayed = tuple(rows.shown[rows.shown_id[row]].tolist())
        told = tuple(rows.bases[rows.base_id[row]].tolist())
        reason, place = judge(now, config, displayed)
        hidden = drawn = None
        if self._key is not None:
            coins = Coins(self._key, step)
            hidden = bubble.challenger(now, config, coins)
            drawn = bubble.decide(now, config, coins).displayed
            last = len(displayed) - 1
            challenged = bubble.challenges_last(step, len(displayed), len(now.base))
            if challenged and displayed[last] in now.base[last + 1 :]:
                hidden = now.base[last]
        clicks = [bool(click) for click in rows.clicks[row]]
        learned = bubble.learn(now, config, Choice(displayed, hidden), clicks)
        self._state = bubble.promote(learned, config)
        return Slip(
            row, told != now.base, reason, place, now.base, drawn if drawn != displayed else None
        )

    def state(self) -> BubbleState:
        """See ``Replayer``."""
        return self._state


class CompiledReplay:
    """The kernel."""

    def __init__(self, start: BubbleState, config: RankerConfig, key: int | None) -> None:
        from bubblerank.kernels import bubble as kernel

        self._arrays = kernel.to_arrays(start)
        self._settings = kernel.make_settings(config, start.horizon)
        self._doublings = np.zeros(1, dtype=np.int64)
        self._keys = [
            np.uint64(purpose_key(key or 0, purpose))
            for purpose in (Purpose.EXCHANGE, Purpose.CHALLENGE)
        ]
        self._seeded = key is not None

    def feed(self, rows: Rows, first: int, last: int) -> Departures:
        """See ``Replayer``."""
        from bubblerank.kernels.audit import make_slips, replay_rows

        found = make_slips(MOST_FINDINGS, len(self._arrays.base), rows.shown.shape[1])
        exchange_key, challenge_key = self._keys
        replay_rows(
            self._arrays,
            self._settings,
            self._doublings,
            exchange_key,
            challenge_key,
            self._seeded,
            rows,
            first,
            last,
            found,
        )
        kept, structure, drawn_off = found.counts.tolist()
        slips = []
        for number in range(kept):
            row, base_off, reason, place, draws_other = found.rows[number].tolist()
            base = tuple(found.base[number].tolist())
            drawn = tuple(found.drawn[number].tolist()) if draws_other else None
            slips.append(Slip(row, bool(base_off), Reason(reason), place, base, drawn))
        return Departures(slips, structure, drawn_off)

    def state(self) -> BubbleState:
        """See ``Replayer``."""
        arrays = self._arrays
        base, horizon = tuple(arrays.base.tolist()), int(arrays.clock[1])
        return BubbleState(base, arrays.wins.copy(), arrays.trials.copy(), 0, horizon)
