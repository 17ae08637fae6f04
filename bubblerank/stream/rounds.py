"""A stream cut into rounds: what a query keeps is carried from one round to the next.

A round is a bounded run over what has newly arrived. It steps through all sessions before its
watermark and hands on the cell and whatever must still wait.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from bubblerank.stream import frames
from bubblerank.stream.outputs import Kept, Learner, Output, Stepped

TAG = b"CARY"
CARRY = "carry"
NEVER_US = -(1 << 62)
"""The watermark before anything has been seen."""
_VERSION = 1
_STAMP = struct.Struct("<q")


@dataclass(frozen=True)
class Carry:
    """The cell of a learner between two rounds, and the elements that wait.

    wake_us: as long as nothing arrives, there is nothing to do before this watermark.
    """

    key: str
    cell: bytes
    waiting: tuple[bytes, ...] = ()
    wake_us: int | None = None

    def to_bytes(self) -> bytes:
        """The element of the next round."""
        wake = b"" if self.wake_us is None else _STAMP.pack(self.wake_us)
        fields = [self.key.encode("utf-8"), wake, self.cell, *self.waiting]
        return frames.pack(TAG, _VERSION, fields)

    @staticmethod
    def from_bytes(data: bytes) -> "Carry":
        """The carry in an element."""
        key, wake, cell, *waiting = frames.unpack(TAG, _VERSION, data)
        wake_us = _STAMP.unpack(wake)[0] if wake else None
        return Carry(key.decode("utf-8"), cell, tuple(waiting), wake_us)

    def sleeps(self, watermark_us: int) -> bool:
        """Whether a round with this watermark changes nothing."""
        return self.wake_us is None or self.wake_us > watermark_us


def stamp(data: bytes, watermark_us: int) -> bytes:
    """An element that tells the round's watermark, which is known only once all were read."""
    return _STAMP.pack(watermark_us) + data


@dataclass(frozen=True)
class Round:
    """A learner's turn in a round, over stamped elements of which at most one is a carry.

    last: step through everything, and carry nothing on.
    """

    learner: Learner
    last: bool = False

    def turn(
        self, key: str, cell: bytes | None, elements: list[bytes], upto_us: int | None
    ) -> Iterator[Output | Stepped | Kept]:
        """See ``bubblerank.stream.outputs.Learner``; the stamps say how far to go."""
        if upto_us is not None or cell is not None:
            raise ValueError(f"a round gives each query one turn, {key!r} was given another")
        watermarks = {_STAMP.unpack_from(data)[0] for data in elements}
        if len(watermarks) != 1:
            raise ValueError(f"a round has one watermark, query {key!r} met {sorted(watermarks)}")
        unstamped = [data[_STAMP.size :] for data in elements]
        carried = [Carry.from_bytes(data) for data in unstamped if frames.tag_of(data) == TAG]
        if len(carried) > 1:
            raise ValueError(f"query {key!r} was carried on {len(carried)} times")
        new = [data for data in unstamped if frames.tag_of(data) != TAG]
        before = carried[0] if carried else Carry(key, b"")
        upto = None if self.last else watermarks.pop()
        if carried and not new and upto is not None and before.sleeps(upto):
            yield Output(CARRY, before.to_bytes())
            yield Kept(b"")
            return
        for output in self.learner.turn(key, before.cell or None, [*before.waiting, *new], upto):
            if not isinstance(output, Kept):
                yield output
                continue
            if not self.last:
                yield Output(CARRY, self._carry(key, output))
            yield Kept(b"", (), output.counts)

    def _carry(self, key: str, kept: Kept) -> bytes:
        return Carry(key, kept.cell, kept.waiting, kept.wake_us).to_bytes()
