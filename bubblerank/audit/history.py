"""All displays of one learner: its blocks in step order, by the items of its initial list."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bubblerank.audit.blocks import RawBlock, Span, span_of
from bubblerank.audit.finding import Key
from bubblerank.audit.rows import Chunk, Ints, Lists, Rows
from bubblerank.problems import Problem

MOST_STEPS = 1 << 40
"""A step above this is no step: it would take a ranker thousands of years to get there."""


class History:
    """The displays of one learner, held as compressed blocks and opened one after the other.

    statistics: its rows of `statistics/`; start: the row that it went on from, if any;
    production: whether the problem's items are the production list that was displayed first.
    """

    def __init__(
        self,
        key: Key,
        blocks: Sequence[bytes],
        statistics: Sequence[Mapping[str, Any]] = (),
        start: Mapping[str, Any] | None = None,
        problem: Problem | None = None,
        positions: int | None = None,
        production: bool = False,
    ) -> None:
        self.key = key
        self.statistics = sorted(statistics, key=lambda row: row["step"])
        self.start = start
        self.problem = problem
        self._positions = positions
        self._production = production
        self._spans = sorted((span_of(data) for data in blocks), key=lambda span: span.first)

    @cached_property
    def displays(self) -> int:
        """How many rows there are."""
        return sum(span.rows for span in self._spans)

    @cached_property
    def last_step(self) -> int:
        """The highest step; 0 without rows."""
        return max((span.last for span in self._spans), default=0)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The initial list R_0: of the statistics, else the problem's, else the first base list."""
        if self.start is not None:
            return tuple(self.start["initial"])
        if self.statistics:
            return tuple(self.statistics[0]["initial"])
        if self.problem is not None and (self._production or self._width("base_width") == 0):
            return self.problem.items
        width = self._width("base_width")
        for span in self._spans:
            if span.base_width == width:
                block = RawBlock.from_bytes(span.data)
                return tuple(block.items[code] for code in block.bases[block.base_id[0]])
        return ()

    @cached_property
    def shown(self) -> int:
        """K: the positions asked for, else the length of most displayed lists."""
        if self._positions is not None:
            return min(self._positions, len(self.items))
        return min(self._width("shown_width"), len(self.items))

    def _width(self, name: str) -> int:
        rows: Counter[int] = Counter()
        for span in self._spans:
            rows[getattr(span, name)] += span.rows
        return max(rows, key=lambda width: (rows[width], width), default=0)

    def chunks(self) -> Iterator[Chunk]:
        """The rows in step order; blocks whose steps overlap are merged."""
        index = {item: place for place, item in enumerate(self.items)}
        waiting: list[Span] = []
        reach = -(1 << 63)
        for span in self._spans:
            if waiting and span.first > reach:
                yield self._open(waiting, index)
                waiting = []
            waiting.append(span)
            reach = max(reach, span.last)
        if waiting:
            yield self._open(waiting, index)

    def _open(self, spans: Sequence[Span], index: Mapping[str, int]) -> Chunk:
        raws = [RawBlock.from_bytes(span.data) for span in spans]
        step = np.concatenate([raw.step for raw in raws])
        bases = [_indexed(raw, raw.bases, index, len(self.items)) for raw in raws]
        shown = [_indexed(raw, raw.shown, index, self.shown) for raw in raws]
        base_id = _shifted([raw.base_id for raw in raws], bases)
        shown_id = _shifted([raw.shown_id for raw in raws], shown)
        clicks = np.zeros((len(step), self.shown), dtype=np.uint8)
        clicks_fit = np.zeros(len(step), dtype=np.bool_)
        at = 0
        for raw in raws:
            end = at + len(raw.step)
            if raw.clicks.shape[1] in (self.shown, 0):
                clicks[at:end, : raw.clicks.shape[1]] = raw.clicks
                clicks_fit[at:end] = True
            at = end
        source = np.repeat(np.arange(len(raws)), [len(raw.step) for raw in raws])
        if len(raws) > 1:
            order = np.argsort(step, kind="stable")
            step, base_id, shown_id = step[order], base_id[order], shown_id[order]
            clicks, clicks_fit, source = clicks[order], clicks_fit[order], source[order]
        all_bases, all_shown = np.concatenate(bases), np.concatenate(shown)
        base_names = _namer(raws, [raw.bases for raw in raws], source, base_id, bases)
        shown_names = _namer(raws, [raw.shown for raw in raws], source, shown_id, shown)
        doubled = np.zeros(len(step), dtype=np.bool_)
        doubled[1:] = step[1:] == step[:-1]
        differs = doubled.copy()
        for row in np.flatnonzero(doubled).tolist():
            differs[row] = not (
                base_names(row) == base_names(row - 1)
                and shown_names(row) == shown_names(row - 1)
                and clicks_fit[row] == clicks_fit[row - 1]
                and np.array_equal(clicks[row], clicks[row - 1])
            )
        usable = ~doubled & clicks_fit & (step >= 1) & (step <= MOST_STEPS)
        if self.shown:
            usable &= all_shown[shown_id, 0] >= 0
        rows = Rows(step, base_id, shown_id, all_bases, all_shown, clicks, usable)
        return Chunk(rows, doubled, differs, clicks_fit, base_names, shown_names)


def _indexed(raw: RawBlock, lists: Any, index: Mapping[str, int], width: int) -> Lists:
    """Lists by the initial list's items; one that cannot be begins with -1."""
    if lists.shape[1] != width:
        return np.full((len(lists), width), -1, dtype=np.int16)
    codes = np.array([index.get(item, -1) for item in raw.items], dtype=np.int16)
    found: Lists = codes[lists].astype(np.int16).reshape(len(lists), width)
    ordered = np.sort(found, axis=1)
    wrong = (ordered[:, :1] < 0).any(axis=1) | (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    found[wrong] = -1
    return found


def _shifted(ids: Sequence[Any], tables: Sequence[Lists]) -> Any:
    starts = np.cumsum([0, *(len(table) for table in tables)])[:-1]
    shifted = [one + int(start) for one, start in zip(ids, starts, strict=True)]
    return np.concatenate(shifted).astype(np.int32)


def _namer(
    raws: Sequence[RawBlock],
    tables: Sequence[Any],
    source: Ints,
    ids: Any,
    indexed: Sequence[Lists],
) -> Callable[[int], tuple[str, ...]]:
    starts = np.cumsum([0, *(len(table) for table in indexed)])[:-1]

    def names(row: int) -> tuple[str, ...]:
        which = int(source[row])
        codes = tables[which][int(ids[row]) - int(starts[which])]
        return tuple(raws[which].items[code] for code in codes)

    return names
