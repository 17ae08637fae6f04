"""Several blocks of one query as one, in stepping order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from bubblerank.sessions.block import Block
from bubblerank.sessions.order import argsort, session_order
from bubblerank.sessions.packed_text import Text

IntArray = npt.NDArray[np.int64]


def merge(blocks: Sequence[Block]) -> Block:
    """All sessions of `blocks` by (event time, session id), with common dictionaries.

    Sessions with the same time and id follow by what they hold (items, clicks, step), so that the
    order of the blocks, and how sessions were spread over them, never shows in a session's content.
    """
    if not blocks:
        raise ValueError("merge needs at least one block, got none")
    queries = {block.query for block in blocks}
    if len(queries) > 1:
        raise ValueError(f"blocks of one query can be merged, got {len(queries)} queries")
    together = blocks[0] if len(blocks) == 1 else _concatenate(blocks)
    times = together.event_time_us
    if bool((times[1:] > times[:-1]).all()):
        return together
    order = argsort(times)
    steps = np.diff(times[order])
    if not steps.all():
        order = session_order(None, times, together.session_id_text.arrow())
        order = _settle_doubles(together, order)
    if bool((order[1:] > order[:-1]).all()):
        return together
    return together.select(order)


def _concatenate(blocks: Sequence[Block]) -> Block:
    items: dict[str, int] = {}
    lists: dict[bytes, int] = {}
    sources: dict[str, int] = {}
    list_ids, source_ids = [], []
    for block in blocks:
        item_numbers = _number(items, block.items)
        codes = item_numbers[block.list_items].tobytes()
        bounds = accumulate(block.list_lengths.tolist(), initial=0)
        pieces = [codes[4 * first : 4 * last] for first, last in pairwise(bounds)]
        list_ids.append(_number(lists, pieces)[block.list_id])
        source_numbers = _number(sources, block.sources)
        source_ids.append(source_numbers[block.source_id])
    words = [word.encode("utf-8") for word in items]
    return replace(
        blocks[0],
        event_time_us=np.concatenate([block.event_time_us for block in blocks]),
        position=np.concatenate([block.position for block in blocks]),
        step=np.concatenate([block.step for block in blocks]),
        list_id=np.concatenate(list_ids),
        list_lengths=np.array([len(piece) // 4 for piece in lists], dtype=np.int32),
        list_items=np.frombuffer(b"".join(lists), dtype=np.int32),
        clicks=np.concatenate([block.clicks for block in blocks]),
        session_id_text=Text(
            np.concatenate([block.session_id_text.lengths for block in blocks]),
            b"".join([block.session_id_text.blob for block in blocks]),
        ),
        item_text=Text(np.array([len(w) for w in words], dtype=np.int32), b"".join(words)),
        sources=tuple(sources),
        source_id=np.concatenate(source_ids),
    )


def _number(known: dict[Any, int], keys: Sequence[Any]) -> npt.NDArray[np.int32]:
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int32)


def _settle_doubles(block: Block, order: IntArray) -> IntArray:
    """Order sessions of equal time and id by content; there are few, so one at a time."""
    times = block.event_time_us[order]
    tied = np.flatnonzero(times[1:] == times[:-1])
    if len(tied) == 0:
        return order
    ids = block.session_id_text
    settled, rows, first = order.copy(), order.tolist(), 0
    doubles = [at for at in tied.tolist() if ids.utf8(rows[at]) == ids.utf8(rows[at + 1])]
    while first < len(doubles):
        last = first
        while last + 1 < len(doubles) and doubles[last + 1] == doubles[last] + 1:
            last += 1
        start, stop = doubles[first], doubles[last] + 2
        settled[start:stop] = sorted(rows[start:stop], key=lambda row: _content(block, row))
        first = last + 1
    return settled


def _content(block: Block, row: int) -> tuple[Any, ...]:
    return (
        block.list_of(row),
        block.clicks_of(row).tobytes(),
        int(block.step[row]),
        block.source_of(row),
        int(block.position[row]),
    )
