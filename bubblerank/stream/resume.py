"""From a row of `statistics/` back to the state that wrote it: the warm start."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bubblerank import state_codec
from bubblerank.config import RankerConfig
from bubblerank.rankers.bubble import BubbleState
from bubblerank.stream.start import Start


def start_from_statistic(row: Mapping[str, Any], config: RankerConfig) -> Start:
    """The start of a query whose earlier run ended in this row of the statistic schema.

    With an unknown horizon the doubling goes on from the row's horizon; else the config's holds.
    """
    items = tuple(row["initial"])
    index = {item: place for place, item in enumerate(items)}
    if len(index) != len(items) or sorted(row["base"]) != sorted(items):
        raise ValueError(
            f"statistics of query {row['query']!r}: base must be a permutation of initial, "
            f"got {row['base']} and {row['initial']}"
        )
    wins, trials = np.zeros((2, len(items), len(items)), dtype=np.int64)
    for pair in row["pairs"]:
        upper, lower = index[pair["upper"]], index[pair["lower"]]
        wins[upper, lower], wins[lower, upper] = pair["wins"], -pair["wins"]
        trials[upper, lower] = trials[lower, upper] = pair["trials"]
    horizon = config.start_horizon
    if config.doubling:
        horizon = max(horizon, row["horizon"])
    base = tuple(index[item] for item in row["base"])
    state = BubbleState(base, wins, trials, row["step"], horizon)
    return Start(items, state_codec.encode("bubblerank", state))
