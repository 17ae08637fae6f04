"""Which waiting sessions may step now: in order, once each, and none that comes too late."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bubblerank.sessions.block import Block
from bubblerank.stream.cell import Cell

Mask = npt.NDArray[np.bool_]
_FEW = 1024


class Admitted(NamedTuple):
    """Sessions in stepping order; how many were duplicates; the late ones by row of the block."""

    block: Block
    duplicates: int
    late: npt.NDArray[np.int64]


def admit(block: Block, cell: Cell) -> Admitted:
    """Take a block in (event time, session id) order apart.

    A session id counts once, by its first session in that order, among those of the block and
    the ids that the cell remembers. A session at or before the cell's frontier is late: its
    turn has passed.
    """
    if cell.frontier is None and not cell.recent and _few_distinct(block):
        return Admitted(block, 0, np.zeros(0, dtype=np.int64))
    session_ids = block.session_id_text.arrow()
    repeated = ~first_occurrences(session_ids)
    if cell.recent:
        known = pc.is_in(session_ids, value_set=pa.array(cell.recent, pa.large_string()))
        repeated |= known.to_numpy(zero_copy_only=False)
    late = np.zeros(len(block), dtype=np.bool_)
    if cell.frontier is not None:
        late[: rows_until(block, cell.frontier)] = True
        late &= ~repeated
    kept = ~(repeated | late)
    admitted = block if kept.all() else block.select(kept)
    return Admitted(admitted, int(repeated.sum()), np.flatnonzero(late))


def _few_distinct(block: Block) -> bool:
    """Whether there are few ids, all different: a set tells it sooner than Arrow."""
    return len(block) <= _FEW and len(set(block.session_ids)) == len(block)


def first_occurrences(session_ids: pa.LargeStringArray) -> Mask:
    """True where an id stands for the first time."""
    encoded = session_ids.dictionary_encode()
    first = np.zeros(len(session_ids), dtype=np.bool_)
    if len(encoded.dictionary) == len(session_ids):
        first[:] = True
        return first
    _codes, places = np.unique(encoded.indices.to_numpy(), return_index=True)
    first[places] = True
    return first


def rows_until(block: Block, frontier: tuple[int, str]) -> int:
    """How many sessions of an ordered block are not after (event time, session id)."""
    time_us, session_id = frontier
    last = int(np.searchsorted(block.event_time_us, time_us, side="right"))
    limit = session_id.encode("utf-8")
    while last and block.event_time_us[last - 1] == time_us:
        if block.session_id_text.utf8(last - 1) <= limit:
            break
        last -= 1
    return last


def remember(cell: Cell, block: Block, memory: int) -> tuple[str, ...]:
    """The last ``memory`` session ids, those of the admitted block at the end."""
    if not memory:
        return ()
    return (*cell.recent, *block.session_id_text.last(memory))[-memory:]
