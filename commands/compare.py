"""`bubblerank compare`: do two runs hold the same rows?"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubblerank.run_folder import PARTS
from commands.arguments import add_output, integer
from commands.output import remark, show_json, show_rows

if TYPE_CHECKING:
    from bubblerank.compare import Difference, PartComparison
    from bubblerank.run_folder import RunFolder

EXAMPLES = """\
examples:
  bubblerank compare runs/monday runs/again
  bubblerank compare runs/a runs/b --limit 100 --format json
  bubblerank compare runs/simulated runs/replayed --part statistics

Rows have no order, and every column counts to the bit. Of rejects, `detail` and the folder of
`source` do not count. What run.json says about time does not count either.
Exit codes: 0 the same rows, 1 different, 2 no such run.
"""

SAME, DIFFERENT = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `compare`."""
    parser.add_argument("expected", metavar="RUN_A", type=Path, help="a run's folder")
    parser.add_argument("actual", metavar="RUN_B", type=Path, help="the folder to compare with it")
    parser.add_argument(
        "--part",
        action="append",
        choices=PARTS,
        metavar="P",
        help=f"only this part, may be repeated: {', '.join(PARTS)} (default: all)",
    )
    parser.add_argument(
        "--limit",
        type=integer(0, 100_000),
        default=10,
        metavar="N",
        help="differences to show of each part (default: 10)",
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print the parts, then the first differences."""
    from bubblerank.compare import compare_runs
    from bubblerank.run_folder import RunFolder

    a, b = RunFolder(args.expected), RunFolder(args.actual)
    parts = compare_runs(a, b, args.limit, args.part or PARTS)
    same = all(part.same for part in parts)
    if args.format == "json":
        show_json({"same": same, "parts": [asdict(part) for part in parts]})
    else:
        _show(parts)
    for line in [] if args.part else _different_books(a, b):
        remark(line, quiet=args.quiet)
    verdict = "the runs hold the same rows" if same else "the runs hold different rows"
    if args.part:
        verdict += f" in {', '.join(dict.fromkeys(args.part))}"
    remark(verdict if parts else "neither run holds any row", quiet=args.quiet)
    return SAME if same else DIFFERENT


def _show(parts: Sequence["PartComparison"]) -> None:
    summary = [
        {
            "part": part.part,
            "rows in A": part.rows_a,
            "rows in B": part.rows_b,
            "verdict": "same" if part.same else _extent(part),
        }
        for part in parts
    ]
    if summary:
        show_rows(summary, form="table")
    for part in parts:
        rows = [row for difference in part.differences for row in _lines(difference)]
        if rows:
            shown = len(part.differences)
            show_rows(
                rows, form="table", title=f"{part.part}: the first {shown} of {_extent(part)}"
            )


def _extent(part: "PartComparison") -> str:
    bound = "" if part.all_found else "at least "
    return f"{bound}{part.differing:,} differences"


def _lines(difference: "Difference") -> list[dict[str, Any]]:
    """A line for each column that differs, or one for a row that only one run holds."""
    key = " ".join(f"{name}={value}" for name, value in difference.key.items())
    a, b = difference.expected, difference.actual
    if a is None or b is None:
        only = "B" if a is None else "A"
        values = _others(a or b or {}, difference.key)
        return [
            {
                "row": key,
                "column": f"(only in {only})",
                "A": None if a is None else values,
                "B": None if b is None else values,
            }
        ]
    return [
        {"row": key, "column": name, "A": _told(a[name]), "B": _told(b[name])}
        for name in a
        if repr(a[name]) != repr(b[name])
    ]


def _others(row: dict[str, Any], key: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in row.items() if name not in key)


def _told(value: Any) -> str | None:
    """A value in full: a table's rounded number could hide what differs."""
    return None if value is None else value if isinstance(value, str) else repr(value)


def _different_books(a: "RunFolder", b: "RunFolder") -> list[str]:
    from bubblerank.books import Books

    books = [
        asdict(Books.from_counters(run.read_manifest().get("counters") or {})) for run in (a, b)
    ]
    return [
        f"remark: run.json counts {name} {books[0][name]:,} in A, {books[1][name]:,} in B"
        for name in books[0]
        if books[0][name] != books[1][name]
    ]
