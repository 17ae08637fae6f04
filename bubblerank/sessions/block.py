"""A block: many sessions of one query in columns, and its bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bubblerank.sessions import layout
from bubblerank.sessions.lists import offsets_of, take_rows, uniform_width
from bubblerank.sessions.packed_text import Text

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Block:
    """Sessions of one query, in (event time, session id) order; arrays are read-only views.

    `list_items` are numbers of `items`; list l is `list_items[list_offsets[l]:list_offsets[l+1]]`,
    and session i shows list `list_id[i]` with the clicks
    `clicks[click_offsets[i]:click_offsets[i+1]]`. An unknown step is -1. `lists` and
    `click_matrix` are the same as rectangles, where all lists are equally long (`width`).
    """

    query: str
    event_time_us: IntArray
    position: IntArray
    step: IntArray
    list_id: CodeArray
    list_lengths: CodeArray
    list_items: CodeArray
    clicks: npt.NDArray[np.uint8]
    session_id_text: Text
    item_text: Text
    sources: tuple[str, ...]
    source_id: CodeArray

    def __len__(self) -> int:
        return len(self.event_time_us)

    @property
    def items(self) -> tuple[str, ...]:
        """The distinct items of the block's lists."""
        return self.item_text.strings

    @property
    def session_ids(self) -> tuple[str, ...]:
        """The session ids, one for each session."""
        return self.session_id_text.strings

    @cached_property
    def width(self) -> int | None:
        """The length of the lists when all are equally long, else None."""
        return uniform_width(self.list_lengths)

    @cached_property
    def list_offsets(self) -> IntArray:
        """Where each list begins in `list_items`."""
        return offsets_of(self.list_lengths)

    @cached_property
    def click_offsets(self) -> IntArray:
        """Where each session begins in `clicks`."""
        return offsets_of(self.list_lengths[self.list_id])

    @property
    def lists(self) -> CodeArray:
        """The distinct lists as an array of shape (lists, width)."""
        return self.list_items.reshape(len(self.list_lengths), self._rectangle())

    @property
    def click_matrix(self) -> npt.NDArray[np.uint8]:
        """The clicks as an array of shape (sessions, width)."""
        return self.clicks.reshape(len(self), self._rectangle())

    def _rectangle(self) -> int:
        if self.width is None:
            raise ValueError(
                f"the {len(self.list_lengths)} lists of query {self.query[:80]!r} are not equally "
                "long: use list_offsets and click_offsets"
            )
        return self.width

    def list_of(self, session: int) -> tuple[str, ...]:
        """The items that a session displayed, top first."""
        number = self.list_id[session]
        codes = self.list_items[self.list_offsets[number] : self.list_offsets[number + 1]]
        return tuple([self.items[code] for code in codes.tolist()])

    def clicks_of(self, session: int) -> npt.NDArray[np.uint8]:
        """The clicks of a session, top first."""
        return self.clicks[self.click_offsets[session] : self.click_offsets[session + 1]]

    def source_of(self, session: int) -> str:
        """The file that a session comes from."""
        return self.sources[int(self.source_id[session])]

    def select(self, rows: npt.NDArray[Any]) -> Block:
        """The sessions of a mask or of row numbers, with the dictionaries of the whole block."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
        return replace(
            self,
            event_time_us=self.event_time_us[chosen],
            position=self.position[chosen],
            step=self.step[chosen],
            list_id=self.list_id[chosen],
            clicks=self._clicks_at(chosen),
            session_id_text=self.session_id_text.take(chosen),
            source_id=self.source_id[chosen],
        )

    def _clicks_at(self, rows: IntArray) -> npt.NDArray[np.uint8]:
        if self.width is not None:
            return self.click_matrix[rows].reshape(-1)
        return take_rows(self.clicks, self.list_lengths[self.list_id], rows)

    def to_payload(self, session: int) -> str:
        """One session as a JSON object in the session schema's fields."""
        step = int(self.step[session])
        record = {
            "query": self.query,
            "session_id": self.session_id_text.utf8(session).decode("utf-8"),
            "event_time": int(self.event_time_us[session]),
            "items": list(self.list_of(session)),
            "clicks": [bool(click) for click in self.clicks_of(session)],
            "step": None if step < 0 else step,
        }
        return json.dumps(record, ensure_ascii=False)

    def to_bytes(self) -> bytes:
        """The bytes that `decode` reads."""
        query = self.query.encode("utf-8")
        sources = [source.encode("utf-8") for source in self.sources]
        has_steps = bool((self.step >= 0).any())
        header = layout.Header(
            has_steps * layout.HAS_STEPS + (self.width is not None) * layout.UNIFORM,
            len(self),
            len(self.list_lengths),
            len(self.item_text.lengths),
            len(sources),
            len(query),
            sum(map(len, sources)),
            len(self.list_items),
            len(self.clicks),
            len(self.session_id_text.blob),
            len(self.item_text.blob),
        )
        parts: list[bytes | memoryview] = [
            self.event_time_us.tobytes(),
            self.position.tobytes(),
            self.step.tobytes() if has_steps else b"",
            self.list_id.tobytes(),
            self.session_id_text.lengths.tobytes(),
            self.source_id.tobytes() if len(sources) > 1 else b"",
            b"" if self.width is not None else self.list_lengths.tobytes(),
            self.list_items.tobytes(),
            self.item_text.lengths.tobytes(),
            np.array([len(source) for source in sources], dtype=np.int32).tobytes(),
            self.clicks.tobytes(),
            self.session_id_text.blob,
            self.item_text.blob,
            query,
            *sources,
        ]
        return layout.pack(header, parts)


class _Cursor:
    """Hands out consecutive views of a block's bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = layout.HEADER_BYTES

    def array(self, kind: type[np.generic], count: int) -> npt.NDArray[Any]:
        found = np.frombuffer(self._data, dtype=kind, count=count, offset=self._at)
        self._at += found.nbytes
        return found

    def text(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]


def _filled(count: int, value: int, kind: type[np.generic]) -> npt.NDArray[Any]:
    array = np.empty(count, dtype=kind)
    array.fill(value)
    return array


def decode(data: bytes) -> Block:
    """The block in `data`; its arrays are views of it.

    Raises ValueError when `data` is no block, of another version, cut short or damaged.
    """
    header = layout.unpack(data)
    cursor, rows = _Cursor(data), header.sessions
    times = cursor.array(np.int64, rows)
    positions = cursor.array(np.int64, rows)
    if header.flags & layout.HAS_STEPS:
        steps = cursor.array(np.int64, rows)
    else:
        steps = _filled(rows, -1, np.int64)
    list_id = cursor.array(np.int32, rows)
    id_lengths = cursor.array(np.int32, rows)
    if header.sources > 1:
        source_id = cursor.array(np.int32, rows)
    else:
        source_id = np.zeros(rows, dtype=np.int32)
    if header.flags & layout.UNIFORM:
        list_lengths = _filled(header.lists, header.list_items // header.lists, np.int32)
    else:
        list_lengths = cursor.array(np.int32, header.lists)
    list_items = cursor.array(np.int32, header.list_items)
    item_lengths = cursor.array(np.int32, header.items)
    source_lengths = cursor.array(np.int32, header.sources)
    clicks = cursor.array(np.uint8, header.clicks)
    session_ids = Text(id_lengths, cursor.text(header.session_id_bytes))
    items = Text(item_lengths, cursor.text(header.item_bytes))
    query = cursor.text(header.query_bytes).decode("utf-8")
    sources = tuple([cursor.text(size).decode("utf-8") for size in source_lengths.tolist()])
    return Block(
        query,
        times,
        positions,
        steps,
        list_id,
        list_lengths,
        list_items,
        clicks,
        session_ids,
        items,
        sources,
        source_id,
    )
