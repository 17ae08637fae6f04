"""Displays of one learner in step order, in columns, as every check takes them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Lists = npt.NDArray[np.int16]
Flags = npt.NDArray[np.bool_]


class Rows(NamedTuple):
    """Displays in step order; each distinct list stands there once, and rows name it by number.

    Items are indexes into the initial list. bases, shown: the distinct lists; one that cannot
    be (another length, an item twice, an unknown item) begins with -1. usable: rows that the
    replay can learn from: the first of their step, with a list and clicks that can be.
    """

    step: Ints
    base_id: Numbers
    shown_id: Numbers
    bases: Lists
    shown: Lists
    clicks: npt.NDArray[np.uint8]
    usable: Flags


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a history, with what the columns cannot tell.

    doubled: rows whose step came before; differs: those that tell another history than the row
    before them. clicks_fit: rows with as many clicks as items. base_names, shown_names: the
    items of a row as they were written.
    """

    rows: Rows
    doubled: Flags
    differs: Flags
    clicks_fit: Flags
    base_names: Callable[[int], tuple[str, ...]]
    shown_names: Callable[[int], tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.rows.step)
