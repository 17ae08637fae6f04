"""Packed rows of many queries, joined into few large Arrow streams."""

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from bubblerank.stream.join_rows import is_packed, rows_table
from bubblerank.stream.tables import to_ipc

JOINED_BYTES = 8 << 20


@beam.typehints.with_input_types(bytes)
@beam.typehints.with_output_types(bytes)
class JoinRows(beam.DoFn):
    """Rows of one kind, packed or as Arrow IPC streams, all as Arrow IPC streams.

    Together, the packed rows of a bundle wait for each other up to JOINED_BYTES: for rows whose
    timestamps nobody needs. Else each becomes a stream at once.
    """

    def __init__(self, together: bool) -> None:
        self._together = together

    def start_bundle(self) -> None:
        self._pieces: list[bytes] = []
        self._bytes = 0

    def process(self, piece: bytes) -> Iterator[bytes]:
        if not is_packed(piece):
            yield piece
            return
        self._pieces.append(piece)
        self._bytes += len(piece)
        if not self._together or self._bytes >= JOINED_BYTES:
            yield self._join()

    def finish_bundle(self) -> Iterator[Any]:
        if self._pieces:
            window = GlobalWindow()
            yield WindowedValue(self._join(), window.max_timestamp(), [window])

    def _join(self) -> bytes:
        pieces, self._pieces, self._bytes = self._pieces, [], 0
        return to_ipc(rows_table(pieces))
