"""Structure: could the ranker have displayed these lists, in these steps?"""

from collections.abc import Sequence

import numpy as np

from bubblerank.audit.finding import Outcome, as_text
from bubblerank.audit.history import History
from bubblerank.audit.replaying import Reason, Slip, judge
from bubblerank.audit.rows import Chunk
from bubblerank.config import RankerConfig
from bubblerank.rankers.bubble import BubbleState

CHECK = "structure"
_LONG = 1 << 40


def check_lists(outcome: Outcome, history: History, chunk: Chunk) -> None:
    """Every displayed list has K different items of the initial list, and as many clicks."""
    rows = chunk.rows
    outcome.checked += len(chunk)
    wrong = ~chunk.clicks_fit
    wrong |= rows.shown[rows.shown_id, 0] < 0 if history.shown else True
    for row in np.flatnonzero(wrong)[:20].tolist():
        outcome.fail(
            int(rows.step[row]), _well_formed(history), _described(history, chunk, row), failed=0
        )
    outcome.failed += int(wrong.sum())


def check_base_stays(outcome: Outcome, history: History, chunk: Chunk) -> None:
    """The base list of a ranker that has none of its own is the initial list."""
    rows = chunk.rows
    if rows.bases.shape[1] == 0:
        return
    initial = np.arange(rows.bases.shape[1])
    wrong = (rows.bases != initial).any(axis=1)[rows.base_id]
    for row in np.flatnonzero(wrong)[:20].tolist():
        outcome.fail(
            int(rows.step[row]),
            f"base {as_text(history.items)}, the initial list",
            f"base {as_text(chunk.base_names(row))}",
            failed=0,
        )
    outcome.failed += int(wrong.sum())


def check_neighbours(outcome: Outcome, history: History, chunk: Chunk) -> None:
    """Without the horizon: exchanges of neighbours of the step's parity, by the base that is told.

    What only the statistics can tell (decided pairs, changes of the base list) is not looked at.
    """
    rows = chunk.rows
    fit = np.flatnonzero(rows.usable & (rows.bases[rows.base_id, 0] >= 0))
    kinds = np.stack([rows.base_id[fit], rows.shown_id[fit], rows.step[fit] % 2])
    distinct, first, kind = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
    zeros = np.zeros((rows.bases.shape[1],) * 2, dtype=np.int64)
    config = RankerConfig(rows.shown.shape[1], horizon=_LONG)
    slips = {}
    for number, (base_id, shown_id, _) in enumerate(distinct.T.tolist()):
        row = int(fit[first[number]])
        base = tuple(rows.bases[base_id].tolist())
        state = BubbleState(base, zeros, zeros, int(rows.step[row]) - 1, _LONG)
        reason, place = judge(state, config, rows.shown[shown_id].tolist())
        if reason != Reason.FINE:
            slips[number] = Slip(row, False, reason, place, base, None)
    wrong = np.flatnonzero(np.isin(kind.reshape(-1), list(slips)))
    outcome.failed += len(wrong)
    told = [
        slips[int(kind.reshape(-1)[at])]._replace(row=int(fit[at])) for at in wrong[:20].tolist()
    ]
    tell_slips(outcome, history, chunk, told)


def tell_slips(outcome: Outcome, history: History, chunk: Chunk, slips: Sequence[Slip]) -> None:
    """Findings of rows that depart from the replay; they have been counted already."""
    for slip in slips:
        step = int(chunk.rows.step[slip.row])
        names = [history.items[item] for item in slip.base]
        if slip.base_off:
            outcome.fail(
                step,
                f"base {as_text(names)}, which the clicks so far give",
                f"base {as_text(chunk.base_names(slip.row))}, changed without evidence",
                failed=0,
            )
        if slip.reason != Reason.FINE:
            expected, why = _explain(slip, names, chunk.shown_names(slip.row), step)
            shown = as_text(chunk.shown_names(slip.row))
            outcome.fail(step, expected, f"displayed {shown}: {why}", failed=0)


def _explain(
    slip: Slip, base: Sequence[str], displayed: Sequence[str], step: int
) -> tuple[str, str]:
    shown, place = len(displayed), slip.place
    kept = as_text(base[:shown])
    item = displayed[place]
    if slip.reason == Reason.FAR:
        return (
            f"{kept} with only neighbours exchanged",
            f"{item} at position {place + 1} is not within one position of its place",
        )
    pair = (
        f"the neighbours at positions {place + 1} and {place + 2}"
        if place + 1 < shown and item == base[place + 1]
        else f"position {shown} against hidden {item}"
    )
    if slip.reason == Reason.PARITY:
        return (
            f"{kept} with exchanges of the parity h = {step % 2} of step {step}",
            f"{pair} are of the other parity",
        )
    return (
        f"{kept} with no decided pair exchanged",
        f"{pair} are exchanged although {base[place]} beats {item}",
    )


def _well_formed(history: History) -> str:
    return f"{history.shown} different items of {as_text(history.items)}, and a click mark for each"


def _described(history: History, chunk: Chunk, row: int) -> str:
    names = chunk.shown_names(row)
    known = set(history.items)
    unknown = [name for name in names if name not in known]
    twice = sorted({name for name in names if names.count(name) > 1})
    reasons = [f"displayed {as_text(names)}"]
    if len(names) != history.shown:
        reasons.append(f"{len(names)} items")
    if unknown:
        reasons.append(f"unknown {' '.join(unknown)}")
    if twice:
        reasons.append(f"{' '.join(twice)} more than once")
    if not chunk.clicks_fit[row]:
        reasons.append("clicks of another number than positions")
    return ": ".join([reasons[0], "; ".join(reasons[1:])]) if reasons[1:] else reasons[0]
