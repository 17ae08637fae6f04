"""Rows of one learner, packed: what a turn gives instead of a small Arrow table.

A frame says once what all its rows share (ranker, query, run, the list of items) and holds the
rest as arrays; items are places in that list. Making one costs microseconds, where an Arrow
stream of a few rows costs a millisecond to write, read and join. ``bubblerank.stream.tables``
joins many frames into one table.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bubblerank.closed_loop import Displays
from bubblerank.rankers.bubble import BubbleState, upper_pairs
from bubblerank.sessions.packed_text import Text
from bubblerank.stream import frames

DISPLAYS, STATISTICS = b"DSPL", b"STAT"
CHUNK_ROWS = 65_536
"""Displays in one frame, at most."""
_VERSION = 1

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int16]


class Stream(NamedTuple):
    """Whose rows they are."""

    ranker: str
    query: str
    run: int
    items: Text


class DisplayRows(NamedTuple):
    """Displays of one stream; session ids and times are None where nobody logged them."""

    stream: Stream
    steps: Ints
    times_us: Ints | None
    session_ids: Text | None
    displays: Displays


class StatisticRow(NamedTuple):
    """A state for the statistics: pairs i < j with trials, as places in the initial list."""

    stream: Stream
    step: int
    horizon: int
    log_inverse_delta: float
    base: Places
    uppers: Places
    lowers: Places
    wins: Ints
    trials: Ints


def pack_displays(rows: DisplayRows) -> bytes:
    """The frame of some displays."""
    shape = np.array([len(rows.steps), rows.displays.displayed.shape[1]], dtype=np.int64)
    ids = rows.session_ids
    fields = [
        *_pack_stream(rows.stream),
        shape.tobytes(),
        rows.steps.tobytes(),
        b"" if rows.times_us is None else rows.times_us.tobytes(),
        b"" if ids is None else ids.lengths.tobytes(),
        b"" if ids is None else bytes(ids.blob),
        rows.displays.displayed.tobytes(),
        rows.displays.clicked.tobytes(),
        rows.displays.base.tobytes(),
    ]
    return frames.pack(DISPLAYS, _VERSION, fields)


def unpack_displays(data: bytes) -> DisplayRows:
    """The displays of a frame; arrays are views of it."""
    *stream, shape, steps, times, id_lengths, id_blob, displayed, clicked, base = frames.unpack(
        DISPLAYS, _VERSION, data
    )
    count, shown = _array(shape, np.int64).tolist()
    whose = _unpack_stream(stream)
    return DisplayRows(
        whose,
        _array(steps, np.int64),
        _array(times, np.int64) if times else None,
        Text(_array(id_lengths, np.int32), id_blob) if id_lengths else None,
        Displays(
            _array(displayed, np.int16).reshape(count, shown),
            _array(clicked, np.uint8).reshape(count, shown),
            _array(base, np.int16).reshape(count, len(whose.items.lengths)),
        ),
    )


def pack_statistic(stream: Stream, state: BubbleState, log_inverse_delta: float) -> bytes:
    """The frame of one state."""
    uppers, lowers = upper_pairs(len(state.base))
    trials = state.trials[uppers, lowers]
    touched = np.flatnonzero(trials)
    uppers, lowers = uppers[touched], lowers[touched]
    fields = [
        *_pack_stream(stream),
        np.array([state.step, state.horizon], dtype=np.int64).tobytes(),
        np.float64(log_inverse_delta).tobytes(),
        np.array(state.base, dtype=np.int16).tobytes(),
        uppers.astype(np.int16).tobytes(),
        lowers.astype(np.int16).tobytes(),
        state.wins[uppers, lowers].tobytes(),
        trials[touched].tobytes(),
    ]
    return frames.pack(STATISTICS, _VERSION, fields)


def unpack_statistic(data: bytes) -> StatisticRow:
    """The state of a frame."""
    *stream, clock, level, base, uppers, lowers, wins, trials = frames.unpack(
        STATISTICS, _VERSION, data
    )
    step, horizon = _array(clock, np.int64).tolist()
    return StatisticRow(
        _unpack_stream(stream),
        step,
        horizon,
        float(_array(level, np.float64)[0]),
        _array(base, np.int16),
        _array(uppers, np.int16),
        _array(lowers, np.int16),
        _array(wins, np.int64),
        _array(trials, np.int64),
    )


def _pack_stream(stream: Stream) -> list[bytes]:
    return [
        stream.ranker.encode("utf-8"),
        stream.query.encode("utf-8"),
        stream.run.to_bytes(8, "little", signed=True),
        stream.items.lengths.tobytes(),
        bytes(stream.items.blob),
    ]


def _unpack_stream(fields: Sequence[bytes]) -> Stream:
    ranker, query, run, lengths, words = fields
    return Stream(
        ranker.decode("utf-8"),
        query.decode("utf-8"),
        int.from_bytes(run, "little", signed=True),
        Text(_array(lengths, np.int32), words),
    )


def _array(data: bytes, kind: Any) -> npt.NDArray[Any]:
    return np.frombuffer(data, dtype=kind)
