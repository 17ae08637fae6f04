"""Blocks of displays of one learner as they travel: columns, distinct lists, few bytes a row."""

import json
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bubblerank.stream import frames

TAG = b"DISP"
_VERSION = 1
_LEVEL = 1

Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Span:
    """A block unopened: its bytes, its steps, the lengths of its lists, and its rows."""

    data: bytes
    first: int
    last: int
    base_width: int
    shown_width: int
    rows: int


@dataclass(frozen=True)
class RawBlock:
    """Displays whose lists have the same lengths, sorted by step.

    bases, shown: the distinct lists as indexes into items; base_id, shown_id: a row's lists.
    Columns that were not asked for have width 0.
    """

    items: tuple[str, ...]
    bases: Codes
    shown: Codes
    step: Ints
    base_id: Codes
    shown_id: Codes
    clicks: npt.NDArray[np.uint8]

    def to_bytes(self) -> bytes:
        """The block, compressed."""
        steps = np.diff(self.step, prepend=0)
        arrays = [
            self.bases,
            self.shown,
            steps,
            self.base_id,
            self.shown_id,
            np.packbits(self.clicks, axis=1),
        ]
        narrow = [_narrow(array) for array in arrays]
        head = {
            "items": self.items,
            "clicks": self.clicks.shape[1],
            "steps": [int(self.step[0]), int(self.step[-1])],
            "arrays": [[array.dtype.str, array.shape] for array in narrow],
        }
        body = b"".join(array.tobytes() for array in narrow)
        packed = pa.Codec("zstd", compression_level=_LEVEL).compress(body, asbytes=True)
        text = json.dumps(head).encode("utf-8", "surrogatepass")
        return frames.pack(TAG, _VERSION, [text, len(body).to_bytes(8, "little"), packed])

    @staticmethod
    def from_bytes(data: bytes) -> "RawBlock":
        """The block of ``to_bytes``."""
        text, size, packed = frames.unpack(TAG, _VERSION, data)
        head = json.loads(text)
        body = pa.Codec("zstd").decompress(packed, int.from_bytes(size, "little"), asbytes=True)
        found, at = [], 0
        for kind, shape in head["arrays"]:
            array = np.frombuffer(body, kind, math.prod(shape), at).reshape(shape)
            at += array.nbytes
            found.append(array)
        bases, shown, steps, base_id, shown_id, clicks = found
        return RawBlock(
            items=tuple(head["items"]),
            bases=bases.astype(np.int32),
            shown=shown.astype(np.int32),
            step=np.cumsum(steps, dtype=np.int64),
            base_id=base_id.astype(np.int32),
            shown_id=shown_id.astype(np.int32),
            clicks=np.unpackbits(clicks, axis=1, count=head["clicks"]),
        )


def span_of(data: bytes) -> Span:
    """What the head of a block tells."""
    head = json.loads(frames.unpack(TAG, _VERSION, data)[0])
    (_, bases), (_, shown), (_, steps) = head["arrays"][:3]
    first, last = head["steps"]
    return Span(data, first, last, bases[1], shown[1], steps[0])


def _narrow(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The same integers in the smallest type that holds them."""
    if array.size == 0 or array.dtype == np.uint8:
        return array
    kind = np.promote_types(np.min_scalar_type(array.min()), np.min_scalar_type(array.max()))
    return array.astype(kind if kind.kind in "iu" else np.int64)
