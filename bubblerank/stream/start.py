"""Where a query's ranker starts: an element of the stream that comes before its sessions.

It carries the production list, and the state of an earlier run where one is resumed.
"""

from dataclasses import dataclass

from bubblerank import varints
from bubblerank.stream import frames

TAG = b"STRT"
_VERSION = 1


@dataclass(frozen=True)
class Start:
    """The initial list R_0, and the encoded ranker state to go on from (empty: from scratch)."""

    items: tuple[str, ...]
    state: bytes = b""

    def to_bytes(self) -> bytes:
        """The element of the stream."""
        return frames.pack(TAG, _VERSION, [pack_strings(self.items), self.state])

    @staticmethod
    def from_bytes(data: bytes) -> "Start":
        """The start in an element."""
        items, state = frames.unpack(TAG, _VERSION, data)
        return Start(unpack_strings(items), state)


def pack_strings(strings: tuple[str, ...]) -> bytes:
    """Strings as their lengths in UTF-8 and their bytes."""
    encoded = [string.encode("utf-8") for string in strings]
    lengths = varints.encode([len(encoded), *map(len, encoded)])
    return varints.encode([len(lengths)]) + lengths + b"".join(encoded)


def unpack_strings(data: bytes) -> tuple[str, ...]:
    """The strings of ``pack_strings``."""
    head = next(place for place, byte in enumerate(data) if byte < 0x80) + 1
    (size,) = varints.decode(data[:head])
    _count, *lengths = varints.decode(data[head : head + size])
    strings, at = [], head + size
    for length in lengths:
        strings.append(data[at : at + length].decode("utf-8"))
        at += length
    return tuple(strings)
