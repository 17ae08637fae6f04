"""The one cell of state that a query has in the stream."""

from typing import NamedTuple

from bubblerank import varints
from bubblerank.stream import frames
from bubblerank.stream.start import pack_strings, unpack_strings

_TAG = b"CELL"
_VERSION = 1

NO_INTERVAL = -(1 << 62)


class Cell(NamedTuple):
    """What a query's ranker must not forget.

    items: the initial list R_0; empty as long as it is not known.
    state: the ranker's state, encoded.
    frontier: event time and session id of the last session put in order; what comes before
        it is late.
    recent: the last session ids, to tell duplicates that arrive after their twin was consumed.
    interval: the number of the snapshot interval that has sessions and no snapshot yet.
    seen: whether the final statistics shall have a row (a session came, or a run is resumed).
    """

    items: tuple[str, ...] = ()
    state: bytes = b""
    frontier: tuple[int, str] | None = None
    recent: tuple[str, ...] = ()
    interval: int = NO_INTERVAL
    seen: bool = False

    def to_bytes(self) -> bytes:
        """The cell's bytes."""
        time_us, session_id = self.frontier or (0, "")
        numbers = [self.interval, int(self.seen), int(self.frontier is not None), time_us]
        fields = [
            varints.encode(numbers),
            session_id.encode("utf-8"),
            pack_strings(self.items),
            self.state,
            pack_strings(self.recent),
        ]
        return frames.pack(_TAG, _VERSION, fields)

    @staticmethod
    def from_bytes(data: bytes) -> "Cell":
        """The cell of ``to_bytes``."""
        numbers, session_id, items, state, recent = frames.unpack(_TAG, _VERSION, data)
        interval, seen, has_frontier, time_us = varints.decode(numbers)
        return Cell(
            items=unpack_strings(items),
            state=state,
            frontier=(time_us, session_id.decode("utf-8")) if has_frontier else None,
            recent=unpack_strings(recent),
            interval=interval,
            seen=bool(seen),
        )
