"""The sessions of a synthetic log, in chunks of arrays: who asks what, sees what, clicks what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bubblerank.coins import stream_key
from bubblerank.generation.draws import Floats, Purpose, uniforms, words
from bubblerank.generation.world import World

IntArray = npt.NDArray[np.int64]

START_US = 1_704_067_200_000_000
"""2024-01-01T00:00:00Z, when generated logs begin."""
DAY_US = 86_400_000_000
LATE_MEAN_US = 600_000_000
BROKEN_KINDS = 3
_HOURS = np.array(
    [3, 2, 1, 1, 1, 2, 3, 5, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 9, 9, 8, 6, 4], dtype=np.float64
)
"""How busy the hours of a day are."""
_DAY_SHARES = np.concatenate([[0.0], np.cumsum(_HOURS / _HOURS.sum())])


class Chunk(NamedTuple):
    """Some sessions in order of arrival; `broken` is 0, or the kind of damage from 1.

    number: of the session in the log, from 1. step: of the session in its query, from 1.
    """

    number: IntArray
    query: IntArray
    event_time_us: IntArray
    items: npt.NDArray[np.int16]
    clicks: npt.NDArray[np.bool_]
    step: IntArray
    late: npt.NDArray[np.bool_]
    duplicate: npt.NDArray[np.bool_]
    broken: npt.NDArray[np.int64]


def generate(world: World, chunk_sessions: int = 1 << 16) -> Iterator[Chunk]:
    """All sessions of a log; how they are cut into chunks changes none of them."""
    settings = world.settings
    key = stream_key(settings.seed, "sessions of a generated log", 0)
    asked = np.zeros(settings.queries, dtype=np.int64)
    clock = 0.0
    for first in range(1, settings.sessions + 1, chunk_sessions):
        number = np.arange(first, min(first + chunk_sessions, settings.sessions + 1))
        picked = uniforms(key, Purpose.QUERY, number)
        query = np.searchsorted(world.query_bounds, picked, side="right").astype(np.int64)
        step = asked[query] + _place_in_group(query)
        asked += np.bincount(query, minlength=settings.queries)
        gaps = -np.log1p(-uniforms(key, Purpose.ARRIVAL, number))
        clock_times = np.cumsum(np.concatenate([[clock], gaps]))[1:]
        clock = float(clock_times[-1])
        times = _event_times(clock_times, settings.sessions / settings.days)
        late = uniforms(key, Purpose.LATE, number) < settings.late_rate
        delay = -np.log1p(-uniforms(key, Purpose.LATE, number, 1)) * LATE_MEAN_US
        times = np.where(late, times - delay.astype(np.int64) - 1_000_000, times)
        broken = uniforms(key, Purpose.BROKEN, number) < settings.broken_rate
        kind = 1 + (uniforms(key, Purpose.BROKEN, number, 1) * BROKEN_KINDS).astype(np.int64)
        doubled = uniforms(key, Purpose.DUPLICATE, number) < settings.duplicate_rate
        items = _lists(world, key, number, query, step)
        yield Chunk(
            number,
            query,
            times,
            items,
            _clicks(world, key, number, query, items),
            step,
            late & ~broken,
            doubled & ~broken,
            np.where(broken, kind, 0),
        )


def _place_in_group(groups: IntArray) -> IntArray:
    """For each row, its place from 1 among the rows of its group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff(starts, append=len(groups))
    places = np.empty(len(groups), dtype=np.int64)
    places[order] = np.arange(len(groups)) - np.repeat(starts, sizes) + 1
    return places


def _event_times(clock_times: Floats, per_day: float) -> IntArray:
    """From the clock of a Poisson process of rate 1 to times of days with busy and quiet hours."""
    days = clock_times / per_day
    whole = np.floor(days)
    hours = np.interp(days - whole, _DAY_SHARES, np.arange(25))
    times: IntArray = START_US + ((whole + hours / 24.0) * DAY_US).astype(np.int64)
    return times


def _lists(
    world: World, key: int, number: IntArray, query: IntArray, step: IntArray
) -> npt.NDArray[np.int16]:
    if not world.settings.randomised:
        picked = uniforms(key, Purpose.VARIANT, number)
        variant = np.searchsorted(world.variant_bounds, picked, side="right")
        shown_lists: npt.NDArray[np.int16] = world.variants[query, variant]
        return shown_lists
    items: npt.NDArray[np.int16] = world.variants[query, 0].copy()
    coins = words(key, Purpose.EXCHANGE, number)
    shown = items.shape[1]
    for upper in range(shown - 1):
        bit = (coins >> np.uint64(upper // 2)) & np.uint64(1)
        rows = np.flatnonzero((step % 2 == upper % 2) & (bit == 1))
        items[rows, upper], items[rows, upper + 1] = items[rows, upper + 1], items[rows, upper]
    return items


def _clicks(
    world: World, key: int, number: IntArray, query: IntArray, items: npt.NDArray[np.int16]
) -> npt.NDArray[np.bool_]:
    """As `bubblerank.click_models`: one draw per position decides click and stop."""
    clicks = np.zeros(items.shape, dtype=np.bool_)
    examined = np.ones(len(number), dtype=np.bool_)
    by_examination = world.settings.click_model == "PBM"
    for position, share in enumerate(world.by_position.tolist()):
        draw = uniforms(key, Purpose.CLICK, number, position)
        attraction = world.attraction[query, items[:, position]]
        click = attraction * share if by_examination else attraction
        clicks[:, position] = examined & (draw < click)
        if not by_examination:
            examined &= draw >= attraction * share
    return clicks
