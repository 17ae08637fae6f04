"""Sessions from Yandex relevance-prediction logs, tab-separated.

    SessionID TimePassed Q QueryID RegionID URL1 ... URL10
    SessionID TimePassed C URLID

A query action opens a session; the clicks after it, of the same SessionID, belong to it. The
session id is `SessionID:LINE`. The log has no absolute time: line n happens n milliseconds after
1970-01-01, which keeps the file's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from bubblerank.sessions.raw_rows import RAW_SCHEMA, RawChunk
from bubblerank.sessions.rejects import Reason, RejectRows
from bubblerank.sessions.text_lines import DamagedFileError, Line, text_lines

CHUNK_ROWS = 20_000
MICROS_PER_LINE = 1_000


def read_yandex(file: BinaryIO, source: str, *, compressed: bool = False) -> Iterator[RawChunk]:
    """Chunks of raw rows; a session's position is the line of its query action."""
    sessions = _Sessions(source)
    try:
        for line in text_lines(file, compressed=compressed):
            sessions.take(line)
            if sessions.full():
                yield sessions.drain()
    except DamagedFileError as error:
        sessions.rejects.add(None, Reason.TRUNCATED_FILE, str(error))
    sessions.close()
    yield sessions.drain()


class _Sessions:
    """The session that is open, and the closed ones that wait for their chunk."""

    def __init__(self, source: str) -> None:
        self.rejects = RejectRows(source)
        self._source = source
        self._outside = 0
        self._open: tuple[str, str, int, list[str], list[bool]] | None = None
        self._closed: list[tuple[str, str, int, list[str], list[bool]]] = []

    def full(self) -> bool:
        return len(self._closed) + len(self.rejects) >= CHUNK_ROWS

    def take(self, line: Line) -> None:
        """Add one line's action."""
        try:
            if line.too_long:
                raise ValueError("the line is longer than 16 MiB")
            fields = line.data.decode("utf-8").split("\t")
            if len(fields) < 4 or fields[2] not in ("Q", "C"):
                raise ValueError("not SessionID, TimePassed, Q or C, and what follows")
            if not (fields[0] and fields[1].isdigit()):
                raise ValueError("SessionID is empty or TimePassed is not a whole number")
            if fields[2] == "C":
                self._click(line, fields)
            else:
                self._query(line.number, fields)
        except ValueError as error:
            self._reject(line, Reason.NOT_PARSABLE, str(error))
            if b"\tQ\t" in line.data:
                self.close()

    def _query(self, number: int, fields: list[str]) -> None:
        self.close()
        if len(fields) < 6:
            raise ValueError("a query action without a list: it needs a region and URLs")
        urls = fields[5:]
        self._open = (fields[0], fields[3], number, urls, [False] * len(urls))

    def _click(self, line: Line, fields: list[str]) -> None:
        if len(fields) != 4:
            raise ValueError(f"a click action has 4 fields, got {len(fields)}")
        if self._open is None or self._open[0] != fields[0]:
            detail = "a click without a query action of its session before it"
            self._reject(line, Reason.CLICK_WITHOUT_QUERY, detail)
            return
        _, _, _, urls, clicks = self._open
        try:
            clicks[urls.index(fields[3])] = True
        except ValueError:
            self._outside += 1

    def _reject(self, line: Line, reason: Reason, detail: str) -> None:
        self.rejects.add(line.number, reason, detail, line.data.decode("utf-8", "replace"))

    def close(self) -> None:
        """No more clicks for the open session."""
        if self._open is not None:
            self._closed.append(self._open)
            self._open = None

    def drain(self) -> RawChunk:
        """What was closed, as a chunk."""
        closed, rejects, outside = self._closed, self.rejects, self._outside
        self._closed, self.rejects, self._outside = [], RejectRows(self._source), 0
        numbers = [row[2] for row in closed]
        columns = [
            pa.array([row[1] for row in closed], pa.string()),
            pa.array([f"{row[0]}:{row[2]}" for row in closed], pa.string()),
            pa.array([number * MICROS_PER_LINE for number in numbers], pa.int64()),
            pa.array([row[3] for row in closed], pa.list_(pa.string())),
            pa.array([row[4] for row in closed], pa.list_(pa.bool_())),
            pa.nulls(len(closed), pa.int64()),
        ]
        rows = pa.record_batch(columns, schema=RAW_SCHEMA)
        return RawChunk(rows, np.array(numbers, dtype=np.int64), rejects.to_batch(), outside)
