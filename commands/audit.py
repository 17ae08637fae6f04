"""`bubblerank audit`: prove that displayed lists were safe, or find the row that was not."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubblerank.errors import raise_all, unknown_name
from commands.arguments import add_output, horizon, integer, open_probability
from commands.output import remark, show_json, show_rows

if TYPE_CHECKING:
    from bubblerank.audit.settings import AuditSettings
    from bubblerank.problems import Problem

EXAMPLES = """\
examples:
  bubblerank audit runs/monday
  bubblerank audit runs/sim --problems problems.jsonl --format json
  bubblerank audit 'logs/displays-*.parquet' --problems fitted.jsonl --fitted --horizon 1e6 \\
      --out audits/logs
  bubblerank audit --list

A run's own settings and seed are taken from its run.json; flags take their place. A check that
lacks its input says NOT CHECKED, never PASS.
Writes findings/ and audit.json into RUN, or into --out.
Exit codes: 0 no violation found, 1 failed, 2 usage, 3 a check found violations.
"""
VIOLATIONS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `audit`."""
    parser.add_argument(
        "input", metavar="RUN|GLOB", nargs="*", help="run folders, or Parquet files of displays"
    )
    parser.add_argument("--list", action="store_true", help="name the checks and what they need")
    parser.add_argument(
        "--check", metavar="A,B", help="only these checks (default: all; see --list)"
    )
    truth = parser.add_argument_group("attractions")
    truth.add_argument("--problems", metavar="F", type=Path, help="problems with attractions")
    truth.add_argument(
        "--fitted", action="store_true", help="the problems were fitted to a log, not given"
    )
    truth.add_argument(
        "--click-model",
        choices=("CM", "DCM", "PBM"),
        help="which problems to take where a query has several",
    )
    told = parser.add_argument_group("settings (default: those in run.json)")
    told.add_argument("--seed", type=integer(-(2**63)), metavar="S", help="of the coins")
    told.add_argument("--horizon", type=horizon, metavar="N|auto", help="BubbleRank's horizon")
    told.add_argument("--delta", type=open_probability, metavar="D", help="BubbleRank's delta")
    told.add_argument("--positions", type=integer(1, 1000), metavar="K", help="items displayed")
    told.add_argument("--freeze-decided", action="store_true", help="as when the run was made")
    told.add_argument("--steps", type=integer(1), metavar="N", help="steps of each learner")
    folder = parser.add_argument_group("results")
    folder.add_argument("--out", metavar="DIR", type=Path, help="where to write (default: RUN)")
    folder.add_argument(
        "--overwrite", action="store_true", help="replace an earlier audit in --out"
    )
    folder.add_argument(
        "--limit",
        type=integer(0, 100),
        default=5,
        metavar="N",
        help="failures of each check that the table shows (default: 5)",
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Audit, print the verdict, and tell it by the exit code."""
    if args.list:
        return _list(args)
    checks = _wanted(args)

    from bubblerank.audit.books import check_books
    from bubblerank.audit.inputs import find_inputs, problems_by_query, same_users, settings_of
    from bubblerank.audit.totals import Totals
    from bubblerank.problems import read_problems
    from commands.audit_run import AuditRun

    inputs = find_inputs(args.input)
    problems: dict[str, Problem] = {}
    if args.problems is not None:
        problems = problems_by_query(read_problems(args.problems), args.click_model)
    settings = _override(
        args,
        replace(
            settings_of(inputs.manifest, checks),
            fitted=args.fitted,
            same_users=same_users(inputs.manifest, args.problems, args.fitted),
            statistics=bool(inputs.statistics),
        ),
    )
    books = Totals()
    if "books" in checks:
        for folder in inputs.runs:
            books.add_outcome(check_books(folder))
    audit = AuditRun(args, inputs, settings, problems, books)
    record = audit.run()
    _show(args, record, audit.out)
    return VIOLATIONS if record["verdict"] == "FAIL" else 0


def _list(args: argparse.Namespace) -> int:
    from bubblerank.audit.checks import CHECKS

    rows = [check._asdict() for check in CHECKS.values()]
    show_rows(rows, form=args.format, title="Checks")
    return 0


def _wanted(args: argparse.Namespace) -> tuple[str, ...]:
    """The checks asked for; UsageError for everything that is wrong with the flags."""
    from bubblerank.audit.checks import CHECK_NAMES

    names = args.check.split(",") if args.check else list(CHECK_NAMES)
    complaints = [
        unknown_name("check", name, CHECK_NAMES) for name in names if name not in CHECK_NAMES
    ]
    if not args.input:
        complaints.append("name a run or a glob of displays to audit")
    if args.fitted and args.problems is None:
        complaints.append("--fitted is about --problems: give them")
    if args.horizon is not None and args.delta is not None:
        complaints.append("--horizon and --delta contradict each other: give one of them")
    raise_all(complaints)
    return tuple(name for name in CHECK_NAMES if name in names)


def _override(args: argparse.Namespace, settings: "AuditSettings") -> "AuditSettings":
    """Flags in place of what run.json tells."""
    from bubblerank.config import RankerConfig

    given = {
        name: getattr(args, name)
        for name in ("seed", "positions", "steps")
        if getattr(args, name) is not None
    }
    settings = replace(settings, **given)
    config = settings.config
    if args.horizon is not None or args.delta is not None:
        planned = None if args.horizon == "auto" else args.horizon
        frozen = config.freeze_decided if config else False
        config = RankerConfig(settings.positions, planned, args.delta, frozen)
    if config is not None and args.freeze_decided:
        config = replace(config, freeze_decided=True)
    if config is not None and args.positions is not None:
        config = config.with_positions(args.positions)
    return replace(settings, config=config)


def _show(args: argparse.Namespace, record: dict[str, Any], out: Path | None) -> None:
    if args.format == "json":
        show_json({"out": None if out is None else str(out), **record})
    else:
        show_rows(
            [_line(check) for check in record["checks"]],
            form="table",
            title=f"Audit of {record['displays']:,} displays",
        )
        failures = [
            {name: failure[name] for name in failure if name != "severity"}
            for check in record["checks"]
            for failure in check["first_failures"][: args.limit]
        ]
        if failures:
            show_rows(failures, form="table", title="First failures")
        against = f" {record['against']}" if record["against"] else ""
        show_rows(
            [_exposure(ranker, record["rankers"]) for ranker in record["rankers"]],
            form="table",
            title=f"Violations of the safety constraint{against}, mean of a history",
        )
    where = f"; findings and audit.json are in {out}" if out else "; nothing written: give --out"
    skipped = [check["check"] for check in record["checks"] if check["status"] == "NOT CHECKED"]
    lacks = f", not checked: {', '.join(skipped)}" if skipped else ""
    remark(f"verdict: {record['verdict']}{lacks}{where}", quiet=args.quiet)


def _line(check: dict[str, Any]) -> dict[str, Any]:
    needs = "; ".join(f"needs {what}" for what in check["missing"])
    if check["status"] == "NOT CHECKED" and not needs:
        needs = "nothing here that it applies to"
    return {
        "verdict": check["status"],
        "check": check["check"],
        "checked": check["checked"],
        "failed": check["failed"],
        "histories": check["histories"],
        "remark": needs,
    }


def _exposure(ranker: dict[str, Any], everyone: list[dict[str, Any]]) -> dict[str, Any]:
    prefixes = sorted({int(p) for one in everyone for p in one["violations_in_first"]})
    measured = ranker["measured_histories"]
    counts = ranker["violations_in_first"]
    means = {
        f"first {prefix:,}": counts[str(prefix)] / measured if str(prefix) in counts else None
        for prefix in prefixes
    }
    return {
        "ranker": ranker["ranker"],
        "histories": ranker["histories"],
        "displays": ranker["displays"],
        **means,
        "violations": ranker["violations"],
        "unsafe": ranker["unsafe_histories"],
        "first at": ranker["first_violation"],
        "farthest move": ranker["max_displacement"],
        "mean move": ranker["mean_displacement"],
    }
