"""`bubblerank inspect`: what a run has learned about one query."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commands.arguments import add_output, integer
from commands.output import show_json, show_record, show_rows

if TYPE_CHECKING:
    from bubblerank.query_state import QueryState

EXAMPLES = """\
examples:
  bubblerank inspect runs/monday --query shoes
  bubblerank inspect runs/sim --query q17 --ranker bubblerank --run 0 --format json

A pair is decided when |s| exceeds 2 sqrt(n log(1/delta)): s counts the clicks by which the upper
item is ahead, n the sessions in which exactly one of the two was clicked.
Exit codes: 0 shown, 2 no such run or query.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `inspect`."""
    parser.add_argument("folder", metavar="RUN", type=Path, help="a run's folder")
    parser.add_argument("--query", required=True, metavar="Q", help="the query to show")
    parser.add_argument("--ranker", metavar="R", help="only this ranker (default: all)")
    parser.add_argument(
        "--run", type=integer(0), metavar="N", help="only this repetition (default: all)"
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print the query's lists and pairs, for each ranker and run."""
    from bubblerank.query_state import query_states
    from bubblerank.run_folder import RunFolder

    states = query_states(RunFolder(args.folder), args.query, args.ranker, args.run)
    if args.format == "json":
        show_json([asdict(state) for state in states])
        return 0
    for state in states:
        _show(state)
    return 0


def _show(state: "QueryState") -> None:
    facts: dict[str, Any] = {
        "ranker": state.ranker,
        "run": state.run,
        "sessions consumed": state.step,
        "horizon": state.horizon or None,
        "log(1/delta)": state.log_inverse_delta,
        "pairs decided": sum(pair.winner is not None for pair in state.pairs),
        "pairs seen": len(state.pairs),
    }
    show_record(facts, form="table", title=f"query {state.query}")
    show_rows(_lists(state), form="table", title="lists, top first")
    if state.pairs:
        show_rows(_pairs(state), form="table", title="pairs")


def _lists(state: "QueryState") -> list[dict[str, Any]]:
    """Both lists side by side; `moved` says how far an item of the base list has come up."""
    was = {item: place for place, item in enumerate(state.initial, 1)}
    return [
        {
            "position": place,
            "initial": state.initial[place - 1] if place <= len(state.initial) else None,
            "base": item,
            "moved": f"{was[item] - place:+d}" if was.get(item, place) != place else "",
        }
        for place, item in enumerate(state.base, 1)
    ]


def _pairs(state: "QueryState") -> list[dict[str, Any]]:
    return [
        {
            "upper": pair.upper,
            "lower": pair.lower,
            "s (wins)": pair.wins,
            "n (trials)": pair.trials,
            "threshold": round(pair.threshold, 2),
            "decided": f"{pair.winner} is better" if pair.winner is not None else "open",
        }
        for pair in state.pairs
    ]
