"""`bubblerank simulate`: rankers against the click models of problems."""

import argparse
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commands.arguments import (
    add_output,
    add_ranker,
    add_run_folder,
    add_seed,
    add_top,
    describe_ranker,
    integer,
    ranker_config,
    ranker_settings,
    refuse_nonempty,
)
from commands.output import remark, show_json, show_rows

if TYPE_CHECKING:
    from bubblerank.config import RankerConfig
    from bubblerank.problems import Problem

EXAMPLES = """\
examples:
  bubblerank simulate --problems problems.jsonl --steps 100000 --out runs/first
  bubblerank simulate --problems problems.jsonl --steps 1e6 --runs 10 --seed 7 \\
      --ranker bubblerank,toprank,baseline --out runs/compared
  bubblerank simulate --problems problems.jsonl --steps 1000 --displays --out runs/log \\
      -- --direct_num_workers=2

Writes metrics/, statistics/ (of bubblerank), with --displays also displays/, and run.json.
A learner is one ranker on one query in one run; the table shows means over learners, with
standard errors. Exit codes: 0 fine, 1 failed, 2 usage, 130 interrupted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `simulate`."""
    parser.add_argument(
        "--problems",
        metavar="F",
        type=Path,
        required=True,
        help="problems as .jsonl, .avro or .parquet (see `bubblerank schema show problem`)",
    )
    parser.add_argument(
        "--steps", metavar="N", type=integer(1), required=True, help="sessions of each query"
    )
    parser.add_argument(
        "--ranker",
        metavar="A,B",
        default="bubblerank",
        help="bubblerank, cascade-klucb, batchrank, toprank, baseline; several with commas "
        "(default: bubblerank)",
    )
    parser.add_argument(
        "--runs",
        metavar="R",
        type=integer(1, 1_000_000),
        default=1,
        help="runs of each (default: 1)",
    )
    parser.add_argument(
        "--checkpoints",
        metavar="C",
        type=integer(1),
        default=50,
        help="log-spaced steps at which metrics are written, the last at N (default: 50)",
    )
    parser.add_argument("--displays", action="store_true", help="also write every displayed list")
    parser.add_argument(
        "--block-steps",
        metavar="B",
        type=integer(1),
        default=1_000_000,
        help="sessions in an element of the stream; changes no row (default: 1000000)",
    )
    add_seed(parser)
    add_top(parser)
    add_ranker(parser, default_horizon="--steps")
    add_run_folder(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate, then print a line for each click model and ranker."""
    refuse_nonempty(args.out, args.overwrite)
    rankers = tuple(dict.fromkeys(name.strip() for name in args.ranker.split(",")))
    config = ranker_config(args, args.steps)

    from bubblerank.metrics import log_spaced
    from bubblerank.problems import read_problems
    from bubblerank.stream.simulate import Simulation
    from commands.execution import execute
    from pipelines.simulate import SimulateSettings, build

    checkpoints = tuple(log_spaced(args.steps, args.checkpoints))
    settings = SimulateSettings(
        simulation=Simulation(config, args.seed, args.top, checkpoints, args.displays),
        problems=tuple(read_problems(args.problems)),
        rankers=rankers,
        runs=args.runs,
        steps=args.steps,
        out=str(args.out),
        block_steps=args.block_steps,
    )
    settings.check()
    learners = len(settings.problems) * len(rankers) * args.runs
    runs = f"{args.runs:,} {'run' if args.runs == 1 else 'runs'} of {args.steps:,} steps"
    remark(
        f"{_kinds(settings.problems)}; {', '.join(rankers)}; {runs}: "
        f"{learners * args.steps:,} sessions\n{describe_ranker(config)}, seed {args.seed}",
        quiet=args.quiet,
    )
    _warn_of_shared_queries(settings.problems)
    manifest = execute(
        args,
        "simulate",
        lambda pipeline: build(pipeline, settings),
        _in_force(args, settings),
        total=learners * args.steps,
    )
    _report(args, manifest)
    return 0


def _warn_of_shared_queries(problems: Sequence["Problem"]) -> None:
    """Rows of displays and statistics have no click model to tell two problems apart."""
    shared = [query for query, n in Counter(p.query for p in problems).items() if n > 1]
    if shared:
        remark(
            f"WARNING: {len(shared):,} {'query has' if len(shared) == 1 else 'queries have'} "
            f"problems of several click models, {shared[0][:60]!r} is one: metrics/ tells them "
            "apart, displays/ and statistics/ do not; simulate each click model into its own run"
        )


def _in_force(args: argparse.Namespace, settings: Any) -> dict[str, Any]:
    config: RankerConfig = settings.simulation.config
    return {
        "problems": str(args.problems),
        "rankers": list(settings.rankers),
        "steps": args.steps,
        "runs": args.runs,
        "top": args.top,
        "checkpoints": list(settings.simulation.checkpoints),
        "displays": args.displays,
        **ranker_settings(config),
    }


def _kinds(problems: Sequence["Problem"]) -> str:
    """`3 problems (2 CM, 1 PBM)`."""
    kinds = Counter(problem.click_model for problem in problems)
    named = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    return f"{len(problems):,} {'problem' if len(problems) == 1 else 'problems'} ({named})"


def _report(args: argparse.Namespace, manifest: dict[str, Any]) -> None:
    import pyarrow.parquet as pq

    from bubblerank.summary import MEASURES, for_people, summarise

    last = pq.read_table(args.out / "metrics", filters=[("step", "=", args.steps)]).to_pylist()
    lines = summarise(last, args.steps)
    if args.format == "json":
        show_json({"run": str(args.out), "summary": lines, "counters": manifest["counters"]})
    else:
        title = f"After {args.steps:,} steps, mean over queries and runs, top {args.top}"
        people = [for_people(line) for line in lines]
        show_rows(people, form="table", title=title, right=list(people[0])[-len(MEASURES) :])
    remark(
        f"{manifest['counters']['ranked']:,} sessions in {manifest['seconds']:.1f} s; "
        f"rows are in {args.out}",
        quiet=args.quiet,
    )
    if "bubblerank" in manifest["settings"]["rankers"]:
        query = min(row["query"] for row in last)
        folder = shlex.quote(str(args.out))
        remark(f"next: bubblerank inspect {folder} --query {shlex.quote(query)}", quiet=args.quiet)
