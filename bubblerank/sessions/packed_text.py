"""Strings of a block: UTF-8 bytes back to back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bubblerank.sessions.lists import offsets_of, take_rows

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Text:
    """Strings as UTF-8 bytes back to back and the length of each."""

    lengths: CodeArray
    blob: bytes | memoryview

    @staticmethod
    def of(strings: Sequence[str]) -> Text:
        """These strings, packed."""
        words = [string.encode("utf-8") for string in strings]
        return Text(np.array([len(word) for word in words], dtype=np.int32), b"".join(words))

    @cached_property
    def offsets(self) -> IntArray:
        """Where each string begins, and where the last one ends."""
        return offsets_of(self.lengths)

    @cached_property
    def strings(self) -> tuple[str, ...]:
        """All strings."""
        text, bounds = str(self.blob, "utf-8"), accumulate(self.lengths.tolist(), initial=0)
        if len(text) == len(self.blob):
            return tuple([text[first:last] for first, last in pairwise(bounds)])
        return tuple([self.utf8(i).decode("utf-8") for i in range(len(self.lengths))])

    def utf8(self, index: int) -> bytes:
        """The bytes of one string."""
        return bytes(self.blob[self.offsets[index] : self.offsets[index + 1]])

    def last(self, count: int) -> tuple[str, ...]:
        """The last ``count`` strings, or all if there are fewer."""
        first = len(self.lengths) - count
        if first <= 0:
            return self.strings
        return Text(self.lengths[first:], self.blob[int(self.offsets[first]) :]).strings

    def arrow(self) -> pa.LargeStringArray:
        """All strings as an Arrow array, nothing copied."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.blob)]
        return pa.Array.from_buffers(pa.large_string(), len(self.lengths), buffers)

    def take(self, rows: IntArray) -> Text:
        """The strings at `rows`."""
        blob = take_rows(np.frombuffer(self.blob, np.uint8), self.lengths, rows)
        return Text(self.lengths[rows], blob.tobytes())
