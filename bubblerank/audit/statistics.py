"""Statistics: `statistics/` must follow from the displays and their clicks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bubblerank.audit.finding import Outcome, as_text
from bubblerank.audit.history import History
from bubblerank.config import RankerConfig
from bubblerank.rankers.bubble import BubbleState

CHECK = "statistics"


def compare_state(
    outcome: Outcome,
    history: History,
    config: RankerConfig,
    row: Mapping[str, Any],
    state: BubbleState,
) -> None:
    """One row of `statistics/` against the replayed state after as many sessions."""
    outcome.checked += 1
    problems = _differences(history, config, row, state)
    if problems:
        outcome.failed += 1
    for expected, actual in problems:
        outcome.fail(int(row["step"]), expected, actual, failed=0)


def _differences(
    history: History, config: RankerConfig, row: Mapping[str, Any], state: BubbleState
) -> list[tuple[str, str]]:
    found = []
    items = history.items
    if tuple(row["initial"]) != items:
        found.append((f"initial {as_text(items)}", f"initial {as_text(row['initial'])}"))
        return found
    base = [items[item] for item in state.base]
    if row["base"] != base:
        found.append((f"base {as_text(base)}", f"base {as_text(row['base'])}"))
    if row["horizon"] != state.horizon:
        found.append((f"horizon {state.horizon}", f"horizon {row['horizon']}"))
    level = config.log_inverse_delta(state.horizon)
    if row["log_inverse_delta"] != level:
        found.append((f"log(1/delta) {level!r}", f"log(1/delta) {row['log_inverse_delta']!r}"))
    expected = _pairs_of(state, items)
    actual = {(p["upper"], p["lower"]): (p["wins"], p["trials"]) for p in row["pairs"]}
    if len(actual) != len(row["pairs"]):
        found.append(("each pair once", f"{len(row['pairs'])} pairs, {len(actual)} different"))
    for pair in sorted(expected.keys() | actual.keys()):
        if expected.get(pair, (0, 0)) != actual.get(pair, (0, 0)):
            found.append((_told(pair, expected.get(pair)), _told(pair, actual.get(pair))))
    return found


def _pairs_of(state: BubbleState, items: tuple[str, ...]) -> dict[tuple[str, str], tuple[int, int]]:
    uppers, lowers = np.nonzero(np.triu(state.trials, 1))
    return {
        (items[i], items[j]): (int(state.wins[i, j]), int(state.trials[i, j]))
        for i, j in zip(uppers.tolist(), lowers.tolist(), strict=True)
    }


def _told(pair: tuple[str, str], numbers: tuple[int, int] | None) -> str:
    wins, trials = numbers or (0, 0)
    return f"{pair[0]} over {pair[1]}: wins {wins}, trials {trials}"
