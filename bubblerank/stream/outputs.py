"""What a turn of one query's ranker gives: tables to write, and what to keep for the next turn."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol


class Output(NamedTuple):
    """Rows of one kind of record (display, statistic, metric, reject) as an Arrow IPC stream.

    In a stream cut into rounds also the kind carry: what the next round must know.
    """

    kind: str
    data: bytes


class Stepped(NamedTuple):
    """So many sessions have been ranked since the last word of it: for a progress bar only."""

    sessions: int


class Kept(NamedTuple):
    """The end of a turn: the cell to keep, elements that must wait, counts for the books.

    A learner may keep nothing after a turn from nothing to the end of all time: none follows.

    wake_us: the next turn, even if nothing arrives, must reach at least this event time.
    """

    cell: bytes
    waiting: tuple[bytes, ...] = ()
    counts: Mapping[str, int] = {}
    wake_us: int | None = None


class Learner(Protocol):
    """The pure work of the stateful DoFn."""

    def turn(
        self, key: str, cell: bytes | None, elements: list[bytes], upto_us: int | None
    ) -> Iterator[Output | Stepped | Kept]:
        """Step through everything before event time ``upto_us`` (None: the end of all time).

        Yields outputs, now and then how far it has come, and last exactly one ``Kept``. Depends
        on its arguments alone, so that a turn that is tried again gives the same rows.
        """
