"""Many packed frames of rows as one Arrow table, every column made in one go."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import schemas
from bubblerank.sessions.lists import offsets_of
from bubblerank.sessions.packed_text import Text
from bubblerank.stream.frames import tag_of
from bubblerank.stream.packed_rows import (
    DISPLAYS,
    STATISTICS,
    Stream,
    unpack_displays,
    unpack_statistic,
)

Array = npt.NDArray[Any]


def is_packed(piece: bytes) -> bool:
    """Whether this is a packed frame, not an Arrow IPC stream."""
    return tag_of(piece) in (DISPLAYS, STATISTICS)


def rows_table(pieces: Sequence[bytes]) -> pa.Table:
    """The rows of outputs of one kind: packed frames, or Arrow IPC streams as they are."""
    tag = tag_of(pieces[0])
    if tag == DISPLAYS:
        return _join_displays(pieces)
    if tag == STATISTICS:
        return _join_statistics(pieces)
    return pa.concat_tables([pa.ipc.open_stream(pa.py_buffer(p)).read_all() for p in pieces])


class _Words:
    """The items of all frames in one dictionary, each once."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        coded = _joined_text([stream.items for stream in streams]).dictionary_encode()
        self.dictionary = coded.dictionary
        self._codes = coded.indices.to_numpy()
        self._firsts = offsets_of(np.array([len(stream.items.lengths) for stream in streams]))[:-1]

    def coded(self, places: Sequence[Array]) -> pa.DictionaryArray:
        """Places in each frame's own list, as words of the common dictionary."""
        sizes = [chosen.size for chosen in places]
        index = np.concatenate([chosen.reshape(-1) for chosen in places]).astype(np.int64)
        index += np.repeat(self._firsts, sizes)
        return pa.DictionaryArray.from_arrays(self._codes[index], self.dictionary)


def _join_displays(pieces: Sequence[bytes]) -> pa.Table:
    rows = [unpack_displays(piece) for piece in pieces]
    streams = [one.stream for one in rows]
    counts = np.array([len(one.steps) for one in rows])
    words = _Words(streams)
    schema = schemas.encoded_arrow_schema("display")
    widths = np.repeat([one.displays.displayed.shape[1] for one in rows], counts)
    base_widths = np.repeat([one.displays.base.shape[1] for one in rows], counts)
    clicks = np.concatenate([one.displays.clicked.reshape(-1) for one in rows]).astype(np.bool_)
    columns = [
        _repeated([stream.ranker for stream in streams], counts),
        _repeated([stream.query for stream in streams], counts),
        pa.array(np.repeat([stream.run for stream in streams], counts).astype(np.int32)),
        pa.array(np.concatenate([one.steps for one in rows])),
        _session_ids([one.session_ids for one in rows], counts),
        _times([one.times_us for one in rows], counts),
        _lists(base_widths, words.coded([one.displays.base for one in rows]), schema, "base"),
        _lists(widths, words.coded([one.displays.displayed for one in rows]), schema, "displayed"),
        _lists(widths, pa.array(clicks), schema, "clicks"),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _join_statistics(pieces: Sequence[bytes]) -> pa.Table:
    rows = [unpack_statistic(piece) for piece in pieces]
    streams = [row.stream for row in rows]
    words = _Words(streams)
    schema = schemas.encoded_arrow_schema("statistic")
    sizes = np.array([len(stream.items.lengths) for stream in streams])
    pair_type = schema.field("pairs").type.value_type
    pairs = pa.StructArray.from_arrays(
        [
            words.coded([row.uppers for row in rows]),
            words.coded([row.lowers for row in rows]),
            pa.array(np.concatenate([row.wins for row in rows])),
            pa.array(np.concatenate([row.trials for row in rows])),
        ],
        fields=list(pair_type),
    )
    columns = [
        _repeated([stream.ranker for stream in streams]),
        _repeated([stream.query for stream in streams]),
        pa.array([stream.run for stream in streams], pa.int32()),
        pa.array([row.step for row in rows], pa.int64()),
        pa.array([row.horizon for row in rows], pa.int64()),
        pa.array([row.log_inverse_delta for row in rows], pa.float64()),
        _lists(sizes, words.coded([np.arange(size) for size in sizes]), schema, "initial"),
        _lists(sizes, words.coded([row.base for row in rows]), schema, "base"),
        _lists(np.array([len(row.wins) for row in rows]), pairs, schema, "pairs"),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _repeated(values: Sequence[str], counts: Array | None = None) -> pa.DictionaryArray:
    coded = pa.array(values, pa.string()).dictionary_encode()
    if counts is None:
        return coded
    codes = np.repeat(coded.indices.to_numpy(), counts)
    return pa.DictionaryArray.from_arrays(codes, coded.dictionary)


def _lists(widths: Array, values: pa.Array, schema: pa.Schema, name: str) -> pa.ListArray:
    offsets = pa.array(offsets_of(widths).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values, type=schema.field(name).type)


def _joined_text(texts: Sequence[Text]) -> pa.StringArray:
    offsets = offsets_of(np.concatenate([text.lengths for text in texts])).astype(np.int32)
    blob = b"".join([text.blob for text in texts])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(blob)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _session_ids(texts: Sequence[Text | None], counts: Array) -> pa.StringArray:
    if not any(text is not None for text in texts):
        return pa.nulls(int(counts.sum()), pa.string())
    lengths = [
        np.zeros(count, np.int32) if text is None else text.lengths
        for text, count in zip(texts, counts.tolist(), strict=True)
    ]
    offsets = offsets_of(np.concatenate(lengths)).astype(np.int32)
    blob = b"".join([text.blob for text in texts if text is not None])
    valid = np.repeat([text is not None for text in texts], counts)
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [bits, pa.py_buffer(offsets), pa.py_buffer(blob)]
    return pa.Array.from_buffers(pa.string(), len(valid), buffers)


def _times(times: Sequence[Array | None], counts: Array) -> pa.TimestampArray:
    kind = pa.timestamp("us", tz="UTC")
    known = np.repeat([one is not None for one in times], counts)
    filled = [
        np.zeros(count, np.int64) if one is None else one
        for one, count in zip(times, counts.tolist(), strict=True)
    ]
    mask = None if known.all() else ~known
    return pa.array(np.concatenate(filled), mask=mask).cast(kind)
