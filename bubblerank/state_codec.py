"""A ranker's state as bytes: the same in a Beam cell, in a snapshot and in a test.

    byte 0      version of the layout
    byte 1      the ranker
    then        the integers of the ranker's ``pack``, as varints
    last 4      CRC-32, little endian, of all bytes before

Later versions read what earlier ones wrote; an unknown version is refused.
"""

import zlib

from bubblerank import varints
from bubblerank.config import RankerConfig
from bubblerank.rankers import policy
from bubblerank.rankers.policy import State

VERSION = 1
_CODES = {"bubblerank": 1, "cascade-klucb": 2, "batchrank": 3, "toprank": 4, "baseline": 5}
_NAMES = {code: name for name, code in _CODES.items()}
_SHORTEST = 6


def encode(ranker: str, state: State) -> bytes:
    """The bytes of a state."""
    body = bytes([VERSION, _CODES[ranker]]) + varints.encode(policy(ranker).pack(state))
    return body + zlib.crc32(body).to_bytes(4, "little")


def decode(data: bytes, config: RankerConfig) -> tuple[str, State]:
    """The ranker's name and its state."""
    if len(data) < _SHORTEST:
        raise ValueError(f"state is truncated: got {len(data)} bytes, at least {_SHORTEST} needed")
    if data[0] != VERSION:
        raise ValueError(
            f"state has layout version {data[0]}, this release reads version {VERSION}: "
            "read it with the release that wrote it"
        )
    body, checksum = data[:-4], int.from_bytes(data[-4:], "little")
    if zlib.crc32(body) != checksum:
        raise ValueError(f"state of {len(data)} bytes is truncated or corrupted: wrong checksum")
    if body[1] not in _NAMES:
        raise ValueError(f"state is of an unknown ranker, code {body[1]}: known are {_NAMES}")
    ranker = _NAMES[body[1]]
    try:
        return ranker, policy(ranker).unpack(varints.decode(body[2:]), config)
    except (IndexError, OverflowError, ValueError) as error:
        raise ValueError(f"state of {ranker} is corrupted: {error}") from error
