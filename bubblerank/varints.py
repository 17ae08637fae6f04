"""Integers of any size as bytes: zigzag, then 7 bits a byte, the last byte below 128."""

from collections.abc import Iterable

_ONE_BYTE = 64


def encode(numbers: Iterable[int]) -> bytes:
    """The integers one after another.

    >>> encode([0, -1, 1, 300]).hex()
    '000102d804'
    """
    numbers = list(numbers)
    if numbers and min(numbers) >= 0 and max(numbers) < _ONE_BYTE:
        return bytes([number << 1 for number in numbers])
    out = bytearray()
    for number in numbers:
        folded = number << 1 if number >= 0 else ~(number << 1)
        while folded > 0x7F:
            out.append(folded & 0x7F | 0x80)
            folded >>= 7
        out.append(folded)
    return bytes(out)


def decode(data: bytes) -> list[int]:
    """The integers of ``encode``; ValueError when the last one is cut off."""
    numbers = []
    folded = shift = 0
    for byte in data:
        folded |= (byte & 0x7F) << shift
        if byte > 0x7F:
            shift += 7
            continue
        numbers.append(~(folded >> 1) if folded & 1 else folded >> 1)
        folded = shift = 0
    if shift:
        raise ValueError("the last integer is cut off")
    return numbers
