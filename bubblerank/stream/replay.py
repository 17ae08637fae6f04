"""One query of a click log: order its sessions, learn from those that may teach, tell the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bubblerank import state_codec
from bubblerank.closed_loop import Displays
from bubblerank.coins import Purpose, purpose_key, stream_key
from bubblerank.config import RankerConfig
from bubblerank.rankers import bubble
from bubblerank.rankers.bubble import BubbleState
from bubblerank.sessions.block import Block, decode
from bubblerank.sessions.merge import merge
from bubblerank.sessions.packed_text import Text
from bubblerank.sessions.rejects import Reason, RejectRows
from bubblerank.sessions.rejects import to_ipc as rejects_to_ipc
from bubblerank.stream import feedback
from bubblerank.stream.admit import admit, remember
from bubblerank.stream.cell import NO_INTERVAL, Cell
from bubblerank.stream.frames import tag_of
from bubblerank.stream.outputs import Kept, Output, Stepped
from bubblerank.stream.packed_rows import (
    CHUNK_ROWS,
    DisplayRows,
    Stream,
    pack_displays,
    pack_statistic,
)
from bubblerank.stream.start import TAG as START_TAG
from bubblerank.stream.start import Start

Rows = npt.NDArray[np.int64]

RANKER = "bubblerank"
RUN = 0


@dataclass(frozen=True)
class Replay:
    """How a log is replayed.

    feedback: ``logged`` or ``match``. first_list: take the list of a query's first session as
    its base list where none came before. snapshot_every_us: event time between snapshots of
    the statistics (0: only the final ones). duplicate_memory: how many session ids a query
    remembers, to tell duplicates of sessions that it has consumed.
    """

    config: RankerConfig
    feedback: str = feedback.LOGGED
    first_list: bool = False
    seed: int = 0
    snapshot_every_us: int = 0
    duplicate_memory: int = 64

    def turn(
        self, key: str, cell: bytes | None, elements: list[bytes], upto_us: int | None
    ) -> Iterator[Output | Stepped | Kept]:
        """See ``bubblerank.stream.outputs.Learner``; the key is the query."""
        query = _Query(self, key, Cell() if cell is None else Cell.from_bytes(cell))
        starts = [data for data in elements if tag_of(data) == START_TAG]
        blocks = [decode(data) for data in elements if tag_of(data) != START_TAG]
        query.begin(starts)
        waiting: tuple[bytes, ...] = ()
        wakes = []
        if blocks:
            block = merge(blocks)
            ready = _ready(block, upto_us)
            if ready < len(block):
                waiting = (block.select(np.arange(ready, len(block))).to_bytes(),)
                wakes.append(int(block.event_time_us[ready]) + 1)
                block = block.select(np.arange(ready))
            yield from query.consume(block)
        yield from query.close(upto_us)
        wakes += query.interval_ends_us()
        yield Stepped(query.counts.get("ranked", 0))
        only = cell is None and upto_us is None
        yield Kept(b"" if only else query.kept(), waiting, query.counts, min(wakes, default=None))


def _ready(block: Block, upto_us: int | None) -> int:
    if upto_us is None:
        return len(block)
    return int(np.searchsorted(block.event_time_us, upto_us, side="left"))


class _Ranked(NamedTuple):
    """The sessions of a block as the kernel takes them, by items of the base list."""

    lists: npt.NDArray[np.int64]
    list_id: npt.NDArray[np.int32]
    clicks: npt.NDArray[np.uint8]
    step: npt.NDArray[np.int64]


@dataclass
class _Query:
    """One query during one turn."""

    settings: Replay
    query: str
    cell: Cell
    counts: dict[str, int] = field(default_factory=dict)
    _known: BubbleState | None = None

    def begin(self, starts: Sequence[bytes]) -> None:
        """Take the base list, or the latest state of an earlier run, if none is known yet."""
        candidates = [Start.from_bytes(data) for data in starts]
        if candidates and not self.cell.items:
            start = max(candidates, key=lambda start: (self._steps(start), start.items))
            self.cell = self.cell._replace(
                items=start.items, state=start.state, seen=bool(start.state)
            )

    def consume(self, block: Block) -> Iterator[Output]:
        """Put the ready sessions in order and step through them."""
        admitted = admit(block, self.cell)
        self._count("duplicate", admitted.duplicates)
        if len(admitted.late):
            yield self._reject_late(block, admitted.late)
        ordered = admitted.block
        if len(ordered) == 0:
            return
        if not self.cell.items and self.settings.first_list:
            self.cell = self.cell._replace(items=ordered.list_of(0))
        frontier = int(ordered.event_time_us[-1]), _session_id(ordered, len(ordered) - 1)
        recent = remember(self.cell, ordered, self.settings.duplicate_memory)
        self.cell = self.cell._replace(frontier=frontier, recent=recent)
        if not self.cell.items:
            self._count("no_base_list", len(ordered))
            return
        self.cell = self.cell._replace(seen=True)
        ranked = _for_kernel(ordered, self.cell.items, self._shown())
        for interval, first, last in self._intervals(ordered.event_time_us):
            if self.cell.interval not in (NO_INTERVAL, interval):
                yield self._statistics()
            self.cell = self.cell._replace(interval=interval)
            yield from self._step(ordered, ranked, first, last)

    def close(self, upto_us: int | None) -> Iterator[Output]:
        """The snapshot of an interval that is over, and at the end the final statistics."""
        every = self.settings.snapshot_every_us
        over = upto_us is None or (self.cell.interval + 1) * every <= upto_us
        if every and self.cell.interval != NO_INTERVAL and over:
            yield self._statistics()
            self.cell = self.cell._replace(interval=NO_INTERVAL)
        if upto_us is None and self.cell.seen:
            self._count("queries", 1)
            yield self._statistics()

    def interval_ends_us(self) -> list[int]:
        """When the open snapshot interval ends, if there is one."""
        if not self.settings.snapshot_every_us or self.cell.interval == NO_INTERVAL:
            return []
        return [(self.cell.interval + 1) * self.settings.snapshot_every_us]

    def _intervals(self, times_us: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
        """(number, first row, end row) of the snapshot intervals that have sessions."""
        every = self.settings.snapshot_every_us
        if not every:
            yield NO_INTERVAL, 0, len(times_us)
            return
        numbers = times_us // every
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for first, last in pairwise(bounds):
            yield int(numbers[first]), first, last

    def _step(self, block: Block, ranked: _Ranked, first: int, last: int) -> Iterator[Output]:
        from bubblerank.kernels import bubble as kernel
        from bubblerank.kernels import replay as replay_kernel

        config, state = self._config(), self._state()
        arrays = kernel.to_arrays(state)
        verdicts = replay_kernel.make_verdicts(last - first, len(self.cell.items))
        key = stream_key(self.settings.seed, self.query, RUN)
        replay_kernel.replay(
            arrays,
            kernel.make_settings(config, state.horizon),
            np.uint64(purpose_key(key, Purpose.EXCHANGE)),
            np.uint64(purpose_key(key, Purpose.CHALLENGE)),
            replay_kernel.Log(
                ranked.lists,
                ranked.list_id[first:last],
                ranked.clicks[first:last],
                ranked.step[first:last],
            ),
            verdicts,
            self.settings.feedback == feedback.MATCH,
        )
        self._known = kernel.from_arrays(arrays)
        consumed = np.flatnonzero(verdicts.step)
        self._count("ranked", len(consumed))
        self._count("off_policy", last - first - len(consumed))
        self._count("exchange_chances", int(verdicts.coins[0]))
        self._count("exchanges", int(verdicts.coins[1]))
        if len(consumed) == 0:
            return
        for at in range(0, len(consumed), CHUNK_ROWS):
            chosen = consumed[at : at + CHUNK_ROWS]
            yield Output("display", self._displays(block, ranked, verdicts, first, chosen))

    def _displays(
        self, block: Block, ranked: _Ranked, verdicts: Any, first: int, chosen: Rows
    ) -> bytes:
        rows = first + chosen
        everything = len(rows) == len(block)
        displays = Displays(
            ranked.lists.astype(np.int16)[ranked.list_id[rows]],
            ranked.clicks if everything else ranked.clicks[rows],
            verdicts.base if everything else verdicts.base[chosen],
        )
        return pack_displays(
            DisplayRows(
                self._stream(),
                verdicts.step[chosen],
                block.event_time_us[rows],
                block.session_id_text if everything else block.session_id_text.take(rows),
                displays,
            )
        )

    def _statistics(self) -> Output:
        state = self._state()
        level = self._config().log_inverse_delta(state.horizon)
        return Output("statistic", pack_statistic(self._stream(), state, level))

    def _stream(self) -> Stream:
        return Stream(RANKER, self.query, RUN, Text.of(self.cell.items))

    def _reject_late(self, block: Block, late: npt.NDArray[np.int64]) -> Output:
        rejects: dict[str, RejectRows] = {}
        time_us, session_id = self.cell.frontier or (0, "")
        for row in late.tolist():
            source = block.source_of(row)
            rows = rejects.setdefault(source, RejectRows(source))
            detail = (
                f"event_time {block.event_time_us[row]} us came after the query had stepped to "
                f"{time_us} us (session {session_id!r})"
            )
            rows.add(int(block.position[row]), Reason.LATE, detail, block.to_payload(row))
        self._count("rejected", len(late))
        table = pa.Table.from_batches([rows.to_batch() for rows in rejects.values()])
        return Output("reject", rejects_to_ipc(table.combine_chunks().to_batches()[0]))

    def _shown(self) -> int:
        wanted = self.settings.config.positions
        return len(self.cell.items) if wanted is None else min(wanted, len(self.cell.items))

    def _config(self) -> RankerConfig:
        return _with_positions(self.settings.config, self._shown())

    def kept(self) -> bytes:
        """The cell as it is now."""
        if self._known is not None:
            self.cell = self.cell._replace(state=state_codec.encode(RANKER, self._known))
        return self.cell.to_bytes()

    def _state(self) -> BubbleState:
        if self._known is not None:
            return self._known
        if not self.cell.state:
            return bubble.start(len(self.cell.items), self._config())
        return cast(BubbleState, state_codec.decode(self.cell.state, self._config())[1])

    def _steps(self, start: Start) -> int:
        """How far the state to resume has come; -1 where there is only a base list."""
        if not start.state:
            return -1
        return int(state_codec.decode(start.state, self.settings.config)[1].step)

    def _count(self, name: str, number: int) -> None:
        if number:
            self.counts[name] = self.counts.get(name, 0) + number


@lru_cache(maxsize=256)
def _with_positions(config: RankerConfig, positions: int) -> RankerConfig:
    return config.with_positions(positions)


def _session_id(block: Block, row: int) -> str:
    return block.session_id_text.utf8(row).decode("utf-8")


def _for_kernel(block: Block, items: Sequence[str], shown: int) -> _Ranked:
    """Lists by index into the base list; a list that cannot be shown begins with -1."""
    index = {item: place for place, item in enumerate(items)}
    codes = np.array([index.get(item, -1) for item in block.items], dtype=np.int64)
    if block.width == shown:
        lists, clicks = codes[block.lists], block.click_matrix
    else:
        right = block.list_lengths == shown
        lists = np.full((len(right), shown), -1, dtype=np.int64)
        places = block.list_offsets[:-1][right][:, None] + np.arange(shown)
        lists[right] = codes[block.list_items[places]]
        clicks = np.zeros((len(block), shown), dtype=np.uint8)
        rows = right[block.list_id]
        clicks[rows] = block.clicks[block.click_offsets[:-1][rows][:, None] + np.arange(shown)]
    lists[(lists < 0).any(axis=1)] = -1
    return _Ranked(lists, block.list_id, clicks, block.step)
