"""Raw chunks of one source, gathered into large ones, validated and packed into blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bubblerank.sessions.encode import DEFAULT_BLOCK_SESSIONS, EncodedBlock, encode_blocks
from bubblerank.sessions.raw_rows import RawChunk
from bubblerank.sessions.validate import validate

GATHERED_ROWS = 1 << 20
GATHERED_BYTES = 256 << 20


class Gathered(NamedTuple):
    """What came of up to about a million rows; `read` counts sessions and rejects."""

    blocks: Iterator[EncodedBlock]
    rejects: list[pa.RecordBatch]
    read: int
    rejected: int
    clicks_outside: int


def gather_blocks(
    chunks: Iterable[RawChunk],
    source: str,
    max_sessions: int = DEFAULT_BLOCK_SESSIONS,
    rows_at_once: int = GATHERED_ROWS,
    bytes_at_once: int = GATHERED_BYTES,
) -> Iterator[Gathered]:
    """Blocks and rejects of a source; each query has one run of blocks per `rows_at_once` rows.

    The more rows are gathered, the larger the blocks of rare queries; memory is bounded by
    `rows_at_once` and `bytes_at_once` of raw rows.
    """
    waiting: list[RawChunk] = []
    rows = size = 0
    for chunk in chunks:
        if waiting and chunk.rows.schema != waiting[0].rows.schema:
            yield _flush(waiting, source, max_sessions)
            rows = size = 0
        waiting.append(chunk)
        rows += chunk.rows.num_rows + chunk.rejects.num_rows
        size += chunk.rows.nbytes + chunk.rejects.nbytes
        if rows >= rows_at_once or size >= bytes_at_once:
            yield _flush(waiting, source, max_sessions)
            rows = size = 0
            pa.default_memory_pool().release_unused()
    if waiting:
        yield _flush(waiting, source, max_sessions)
    pa.default_memory_pool().release_unused()


def _flush(chunks: list[RawChunk], source: str, max_sessions: int) -> Gathered:
    """Empty `chunks`, which lets go of the raw rows before blocks are made of them."""
    table = pa.Table.from_batches([chunk.rows for chunk in chunks])
    positions = np.concatenate([chunk.positions for chunk in chunks])
    rejects = [chunk.rejects for chunk in chunks if chunk.rejects.num_rows]
    clicks_outside = sum(chunk.clicks_outside for chunk in chunks)
    chunks.clear()
    table = table.unify_dictionaries().combine_chunks()
    sessions: list[pa.RecordBatch] = []
    for batch in table.to_batches():
        here, positions = np.split(positions, [batch.num_rows])
        good, bad = validate(batch, source, here)
        sessions.append(good)
        rejects += [bad] if bad.num_rows else []
    rejected = sum(batch.num_rows for batch in rejects)
    return Gathered(
        chain.from_iterable(encode_blocks(good, source, max_sessions) for good in sessions),
        rejects,
        rejected + sum(good.num_rows for good in sessions),
        rejected,
        clicks_outside,
    )
