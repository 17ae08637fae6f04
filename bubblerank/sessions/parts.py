"""A part of a file that can be read by itself."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """From `start` to before `stop` (-1: the end), its first row being row `first_position`.

    Parquet counts row groups, Avro bytes; a text file is one part.
    """

    start: int
    stop: int
    first_position: int


WHOLE_FILE = Part(0, -1, 1)
