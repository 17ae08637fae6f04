"""128-bit hashes of Arrow rows, vectorised: equal rows, and only they, hash alike.

Exact to the bit: -0.0 is not 0.0, and a null is neither empty nor zero. How a column is encoded
(dictionary, chunks, slices) makes no difference. Two runs of a program give the same hashes.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]
"""Shape (rows, 2): two independent lanes of 64 bits."""

_LANES = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)
_NULL = np.array([0x6A09E667F3BCC909, 0xBB67AE8584CAA73B], dtype=np.uint64)


def row_hashes(batch: pa.RecordBatch, columns: Sequence[str]) -> Hashes:
    """The hash of each row's values in `columns`, in that order."""
    total = np.zeros((batch.num_rows, 2), dtype=np.uint64)
    for name in columns:
        total = _mix(total + _LANES) ^ _hash_array(batch.column(name))
    return _mix(total)


def _mix(value: Hashes) -> Hashes:
    """The finaliser of splitmix64, in each lane."""
    mixed: Hashes = value ^ (value >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _hash_array(array: pa.Array) -> Hashes:
    if pa.types.is_dictionary(array.type):
        hashes = _take(_hash_array(array.dictionary), array.indices)
    elif pa.types.is_string(array.type):
        encoded = array.dictionary_encode()
        hashes = _take(_hash_texts(encoded.dictionary), encoded.indices)
    elif pa.types.is_list(array.type):
        hashes = _hash_lists(array)
    elif pa.types.is_struct(array.type):
        hashes = np.zeros((len(array), 2), dtype=np.uint64)
        for part in array.flatten():
            hashes = _mix(hashes + _LANES) ^ _hash_array(part)
    else:
        hashes = _mix(_bits(array)[:, None] * _LANES + _LANES)
    if array.null_count:
        hashes[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _hash_texts(texts: pa.Array) -> Hashes:
    digests = b"".join(
        blake2b(text.encode(), digest_size=16).digest() for text in texts.to_pylist()
    )
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _take(hashes: Hashes, indices: pa.Array) -> Hashes:
    if not len(hashes):
        return np.zeros((len(indices), 2), dtype=np.uint64)
    taken: Hashes = hashes[indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return taken


def _bits(array: pa.Array) -> npt.NDArray[np.uint64]:
    if not pa.types.is_float64(array.type):
        array = array.cast(pa.int64())
    bits: npt.NDArray[np.uint64]
    bits = array.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return bits


def _hash_lists(array: pa.Array) -> Hashes:
    """Each element is mixed with its place, the sum with the list's length."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths, dtype=np.int64)
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    longest = int(lengths.max(initial=0))
    spread = _mix((np.arange(longest, dtype=np.uint64) + np.uint64(1))[:, None] * _LANES)
    elements = _mix(_hash_array(array.flatten()) ^ spread[places])
    sums = np.zeros((len(elements) + 1, 2), dtype=np.uint64)
    np.cumsum(elements, axis=0, out=sums[1:])
    lists = sums[ends] - sums[ends - lengths]
    return _mix(lists + _mix((lengths.astype(np.uint64) + np.uint64(1))[:, None] * _LANES))
