"""`bubblerank simulate`: rankers against the click models of problems."""

import argparse
from pathlib import Path
from typing import Any

from commands.arguments import (
    add_output,
    add_ranker,
    add_run_folder,
    add_seed,
    add_top,
    integer,
    ranker_config,
    refuse_nonempty,
)
from commands.output import remark, show_json, show_rows

EXAMPLES = """\
examples:
  bubblerank simulate --problems problems.jsonl --steps 100000 --out runs/first
  bubblerank simulate --problems problems.jsonl --steps 1e6 --runs 10 --seed 7 \\
      --ranker bubblerank,toprank,baseline --out runs/compared
  bubblerank simulate --problems problems.jsonl --steps 1000 --displays --out runs/log \\
      -- --direct_num_workers=2

Writes metrics/, statistics/ (of bubblerank), with --displays also displays/, and run.json.
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
        "--runs", metavar="R", type=integer(1), default=1, help="runs of each (default: 1)"
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
    remark(
        f"{len(settings.problems)} problems, {', '.join(rankers)}, {args.runs} runs, "
        f"{args.steps:,} steps each: {learners * args.steps:,} sessions",
        quiet=args.quiet,
    )
    manifest = execute(
        args,
        "simulate",
        lambda pipeline: build(pipeline, settings),
        _in_force(args, settings),
        total=learners * args.steps,
    )
    _report(args, manifest)
    return 0


def _in_force(args: argparse.Namespace, settings: Any) -> dict[str, Any]:
    config = settings.simulation.config
    return {
        "problems": str(args.problems),
        "rankers": list(settings.rankers),
        "steps": args.steps,
        "runs": args.runs,
        "top": args.top,
        "checkpoints": list(settings.simulation.checkpoints),
        "displays": args.displays,
        "horizon": "auto" if config.doubling else config.horizon,
        "delta": config.delta,
        "positions": config.positions,
        "freeze_decided": config.freeze_decided,
    }


def _report(args: argparse.Namespace, manifest: dict[str, Any]) -> None:
    import pyarrow.parquet as pq

    from bubblerank.summary import summarise

    rows = pq.read_table(args.out / "metrics").to_pylist()
    lines = summarise(rows, args.steps)
    if args.format == "json":
        show_json({"run": str(args.out), "summary": lines, "counters": manifest["counters"]})
    else:
        title = f"After {args.steps:,} steps, mean over queries and runs, top {args.top}"
        show_rows(lines, form="table", title=title)
    remark(
        f"{manifest['counters']['ranked']:,} sessions in {manifest['seconds']:.1f} s; "
        f"rows are in {args.out}\n"
        f"next: bubblerank inspect {args.out} --query {_quoted(rows[0]['query'])}",
        quiet=args.quiet,
    )


def _quoted(query: str) -> str:
    import shlex

    return shlex.quote(query)
