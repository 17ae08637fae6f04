"""The truth behind a synthetic log: how attractive items are, and which lists are displayed.

A production list is good but not perfect: attraction falls with the rank as 0.7 * rank ** -0.9,
times a factor of the query and log-normal noise of each item. v(k) = .95 - .05 k and
chi(k) = k ** -0.7, as in the project's hand-made problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bubblerank.coins import stream_key
from bubblerank.generation.draws import Floats, Purpose, uniforms, words
from bubblerank.generation.settings import LogSettings
from bubblerank.problems import POSITION_PARAMETER, Problem

_NOISE = 0.5
_PRODUCTION_SHARE = 0.55
"""How many sessions display the production list, where there are other variants."""


@dataclass(frozen=True, eq=False)
class World:
    """Queries are numbered from 0, the most frequent first; items of a query from 0 too.

    Items 0 to K - 1 are the production list, top first; the others appear in variants only.
    attraction: by (query, item). variants: items by (query, variant, position).
    """

    settings: LogSettings
    query_bounds: Floats
    variant_bounds: Floats
    attraction: Floats
    variants: npt.NDArray[np.int16]
    by_position: Floats

    def problems(self) -> Iterator[Problem]:
        """The truth of each query's production list."""
        parameter = POSITION_PARAMETER[self.settings.click_model]
        shown = self.settings.positions
        extra = {parameter: tuple(self.by_position.tolist())} if parameter else {}
        for query in range(self.settings.queries):
            yield Problem(
                query=query_name(query),
                items=tuple(item_name(query, item) for item in range(shown)),
                click_model=self.settings.click_model,
                attraction=tuple(self.attraction[query, :shown].tolist()),
                **extra,
            )


def query_name(query: int) -> str:
    """The text of a query, by its number."""
    return f"q{query + 1}"


def item_name(query: int, item: int) -> str:
    """The id of an item, by the numbers of its query and of itself."""
    return f"q{query + 1}-u{item + 1}"


def make_world(settings: LogSettings) -> World:
    """The truth that a seed gives."""
    key = stream_key(settings.seed, "truth of a generated log", 0)
    ranks = np.arange(1, settings.queries + 1, dtype=np.float64)
    others = 0 if settings.randomised else settings.variants - 1
    return World(
        settings=settings,
        query_bounds=_bounds(ranks**-settings.zipf),
        variant_bounds=_bounds(_variant_weights(others)),
        attraction=_attraction(settings, key, others),
        variants=_variants(settings, key, others),
        by_position=_by_position(settings),
    )


def _bounds(weights: Floats) -> Floats:
    """Where each choice ends in [0, 1)."""
    bounds: Floats = np.cumsum(weights / weights.sum())
    bounds[-1] = 1.0
    return bounds


def _variant_weights(others: int) -> Floats:
    if not others:
        return np.ones(1)
    share = (1.0 - _PRODUCTION_SHARE) / others
    return np.array([_PRODUCTION_SHARE, *[share] * others])


def _attraction(settings: LogSettings, key: int, others: int) -> Floats:
    queries, shown = np.arange(settings.queries), settings.positions
    scale = 0.5 + 0.5 * uniforms(key, Purpose.SCALE, queries)
    table = np.empty((settings.queries, shown + others))
    for item in range(shown + others):
        rank = item + 1 if item < shown else shown // 2 + 1
        first = uniforms(key, Purpose.NOISE, queries, 2 * item)
        second = uniforms(key, Purpose.NOISE, queries, 2 * item + 1)
        normal = np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second)
        table[:, item] = 0.7 * rank**-0.9 * scale * np.exp(_NOISE * normal)
    return np.clip(table, 0.005, 0.95)


def _variants(settings: LogSettings, key: int, others: int) -> npt.NDArray[np.int16]:
    """Variant 0 is the production list. Variant v has item K + v - 1 low in the list instead of
    another, and each pair of neighbours of parity v exchanged or not, by a coin."""
    queries, shown = np.arange(settings.queries), settings.positions
    lists = np.tile(np.arange(shown, dtype=np.int16), (settings.queries, others + 1, 1))
    for variant in range(1, others + 1):
        low = shown // 2
        place = low + (uniforms(key, Purpose.LIST, queries, 2 * variant) * (shown - low)).astype(
            int
        )
        lists[queries, variant, place] = shown + variant - 1
        coins = words(key, Purpose.LIST, queries, 2 * variant + 1)
        for upper in range(variant % 2, shown - 1, 2):
            bit = (coins >> np.uint64(upper // 2)) & np.uint64(1)
            rows = np.flatnonzero(bit)
            above = lists[rows, variant, upper]
            lists[rows, variant, upper] = lists[rows, variant, upper + 1]
            lists[rows, variant, upper + 1] = above
    return lists


def _by_position(settings: LogSettings) -> Floats:
    ranks = np.arange(1, settings.positions + 1, dtype=np.float64)
    if settings.click_model == "PBM":
        return ranks**-0.7
    if settings.click_model == "DCM":
        return np.clip(0.95 - 0.05 * ranks, 0.05, 1.0)
    return np.ones(settings.positions)
