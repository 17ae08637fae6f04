"""`bubblerank replay --feedback model`: the paper's protocol, from a log to a verdict.

Fit a click model to the log, take each query's most frequent list as R_0, and run BubbleRank and
the production list against the fitted users.
"""

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubblerank.errors import UsageError
from commands.arguments import describe_ranker, integer, ranker_config, ranker_settings
from commands.log_counts import (
    CLICK_MODELS,
    TOO_MANY_REJECTS,
    add_fitting,
    count_log,
    fit_counts,
    reasons_text,
)
from commands.output import remark, show_json, show_record, show_rows

if TYPE_CHECKING:
    from bubblerank.fitting.model import FittedModel
    from bubblerank.fitting.problems import FittedProblem
    from bubblerank.fitting.read import LogCounts
    from bubblerank.model_verdict import ModelVerdict

DEFAULTS = {"click_model": "PBM", "queries": 100, "min_sessions": 100, "steps": 100_000,
            "runs": 1, "top": 5, "refits": 10}  # fmt: skip
_MORE_FLAGS = ("prior", "iterations", "tolerance", "plain_em", "fitted", "displays")
_OTHER_MODES = {"follow": None, "resume": None, "snapshot_every": None,
                "base_lists": "most-frequent", "duplicate_memory": 64,
                "block_sessions": 16_384}  # fmt: skip
_SHOWN_QUERIES = 20


def add_model_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that go with `--feedback model`; None says that a flag was not given."""
    group = parser.add_argument_group("against a fitted click model (with --feedback model)")
    group.add_argument(
        "--click-model", choices=CLICK_MODELS, help="the click model to fit (default: PBM)"
    )
    group.add_argument(
        "--queries",
        type=integer(1),
        metavar="N",
        help="take the N most frequent queries (default: 100)",
    )
    group.add_argument(
        "--min-sessions",
        type=integer(1),
        metavar="M",
        help="leave out queries with fewer sessions in the log: not enough evidence (default: 100)",
    )
    group.add_argument(
        "--steps", type=integer(1), metavar="N", help="sessions to simulate (default: 100000)"
    )
    group.add_argument(
        "--runs", type=integer(1), metavar="R", help="runs of each query (default: 1)"
    )
    group.add_argument(
        "--top",
        type=integer(1, 1000),
        metavar="T",
        help="positions that reward and NDCG look at (default: 5)",
    )
    group.add_argument(
        "--refits",
        type=integer(0, 10_000),
        metavar="B",
        help="draw the log's clicks from the fit, fit and simulate again, B times: takes the "
        "noise of the fit off the gain and into its interval (default: 10; 0: neither)",
    )
    add_fitting(group)
    group.add_argument(
        "--fitted", type=Path, metavar="F", help="also write the fitted problems to this file"
    )
    group.add_argument(
        "--displays", action="store_true", help="also write every simulated list, for an audit"
    )


def refuse_model_flags(args: argparse.Namespace) -> None:
    """Refuse flags of `--feedback model` in another mode."""
    given = [name for name in (*DEFAULTS, *_MORE_FLAGS) if getattr(args, name) not in (None, False)]
    if given:
        flags = ", ".join(_flag(name) for name in given)
        raise UsageError(
            f"{flags} belong to --feedback model, got --feedback {args.feedback}: leave out, or "
            "take --feedback model"
        )


def run_model(args: argparse.Namespace, column_map: dict[str, str]) -> int:
    """Fit, simulate, judge."""
    other = [name for name, value in _OTHER_MODES.items() if getattr(args, name) != value]
    if other:
        flags = ", ".join(_flag(name) for name in other)
        raise UsageError(
            f"{flags} belong to --feedback logged and match: a fitted model takes the whole log "
            "at once, and each query's most frequent list"
        )
    for name, value in DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    config = ranker_config(args, args.steps)

    from bubblerank.fitting.problems import fitted_problems
    from bubblerank.problems import write_problems
    from commands.arguments import refuse_existing_file

    if args.fitted:
        refuse_existing_file(args.fitted, args.overwrite)
    started = time.monotonic()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    counts = count_log(args, args.log, column_map, args.out.parent)
    model = fit_counts(args, counts)
    frequent = fitted_problems(model, args.queries)
    chosen = [fitted for fitted in frequent if fitted.sessions >= args.min_sessions]
    remark(
        f"{counts.sessions:,} sessions of {len(model.observations.queries):,} queries, "
        f"{args.click_model} fitted in {time.monotonic() - started:.1f} s; "
        f"{reasons_text(counts)}\n"
        f"{len(chosen):,} of the {len(frequent):,} most frequent queries have at least "
        f"{args.min_sessions:,} sessions\n{describe_ranker(config)}, seed {args.seed}",
        quiet=args.quiet,
    )
    if not chosen:
        raise UsageError(
            f"not enough evidence: no query has {args.min_sessions:,} sessions in the log, the "
            f"most frequent has {frequent[0].sessions:,}: read more of the log, or lower "
            "--min-sessions"
        )
    if args.fitted:
        write_problems(args.fitted, [fitted.problem for fitted in chosen])
    manifest, verdict = _simulate(args, config, counts, model, chosen, len(frequent))
    _show(args, counts, manifest, verdict, len(frequent) - len(chosen))
    rate = counts.rejected / counts.read
    if rate > args.max_reject_rate:
        remark(
            f"{rate:.2%} of the log was rejected, --max-reject-rate is {args.max_reject_rate:.2%}"
        )
        return TOO_MANY_REJECTS
    return 0


def _simulate(
    args: argparse.Namespace,
    config: Any,
    counts: "LogCounts",
    model: "FittedModel",
    chosen: "list[FittedProblem]",
    frequent: int,
) -> "tuple[dict[str, Any], ModelVerdict]":
    import pyarrow.parquet as pq

    from bubblerank.metrics import log_spaced
    from bubblerank.model_verdict import BASELINE, RANKER, judge
    from bubblerank.refits import simulate_refits
    from bubblerank.stream.simulate import Simulation
    from commands.execution import execute
    from pipelines.simulate import SimulateSettings, build

    settings = SimulateSettings(
        simulation=Simulation(
            config, args.seed, args.top, tuple(log_spaced(args.steps, 50)), args.displays
        ),
        problems=tuple(fitted.problem for fitted in chosen),
        rankers=(RANKER, BASELINE),
        runs=args.runs,
        steps=args.steps,
        out=str(args.out),
    )
    settings.check()
    verdicts: list[ModelVerdict] = []

    def conclude() -> dict[str, Any]:
        last = pq.read_table(args.out / "metrics", filters=[("step", "=", args.steps)])
        evidence = {one.problem.query: (one.sessions, one.of_list) for one in chosen}
        again = None
        if args.refits:
            remark(f"fitting and simulating {args.refits} times again", quiet=args.quiet)
            again = simulate_refits(
                model, chosen, config, args.steps, args.top, args.seed, args.refits
            )
        verdicts.append(judge(last.to_pylist(), args.steps, evidence, args.seed, again))
        return _record(args, counts, verdicts[0], frequent - len(chosen))

    in_force = {
        "logs": list(args.log),
        "log_format": args.log_format,
        "column_map": args.map,
        "feedback": "model",
        **{name: getattr(args, name) for name in DEFAULTS},
        "prior": str(model.prior),
        "rankers": list(settings.rankers),
        "checkpoints": list(settings.simulation.checkpoints),
        "displays": args.displays,
        **ranker_settings(config),
    }
    total = 2 * len(chosen) * args.runs * args.steps
    manifest = execute(
        args, "replay", lambda pipeline: build(pipeline, settings), in_force, total, conclude
    )
    return manifest, verdicts[0]


def _record(
    args: argparse.Namespace, counts: "LogCounts", verdict: "ModelVerdict", left_out: int
) -> dict[str, Any]:
    """What run.json says beyond the simulation: the log, the verdict, and each query."""
    return {
        "log": {
            "read": counts.read,
            "rejected": counts.rejected,
            "reasons": dict(counts.reasons),
            "click_outside_list": counts.clicks_outside,
        },
        "verdict": {
            "against": f"the fitted {args.click_model}",
            "steps": verdict.steps,
            "queries": len(verdict.queries),
            "queries_without_enough_evidence": left_out,
            "gain": asdict(verdict.gain),
            "gain_by_traffic": asdict(verdict.gain_by_traffic),
            "ndcg_gain": asdict(verdict.ndcg_gain),
            "violations": verdict.violations,
            "queries_that_lose": verdict.losing,
        },
        "queries": [{**asdict(query), "gain": query.gain} for query in verdict.queries],
    }


def _show(
    args: argparse.Namespace,
    counts: "LogCounts",
    manifest: dict[str, Any],
    verdict: "ModelVerdict",
    left_out: int,
) -> None:
    against = f"against the fitted {args.click_model}"
    refitted = f" and {args.refits} refits" if args.refits else ""
    if args.format == "json":
        show_json({"run": str(args.out), **_record(args, counts, verdict, left_out)})
    else:
        rows = [
            {
                "query": query.query,
                "sessions": query.sessions,
                "showed R_0": query.of_list,
                "baseline": query.baseline,
                "bubblerank": query.reward,
                "gain": f"{query.gain:+.1%}",
                "violations": query.violations,
            }
            for query in verdict.queries[:_SHOWN_QUERIES]
        ]
        title = f"Reward per session, top {args.top}, {args.steps:,} sessions, {against}"
        show_rows(rows, form="table", title=title)
        show_record(
            {
                "gain, mean over queries": verdict.gain.text("+.2%"),
                "gain, weighted by traffic": verdict.gain_by_traffic.text("+.2%"),
                "NDCG at the end, gain": verdict.ndcg_gain.text("+.4f"),
                "queries that lose": verdict.losing,
                "safety violations": verdict.violations,
                "queries": len(verdict.queries),
                "queries without enough evidence": left_out,
            },
            form="table",
            title=f"BubbleRank {against}; 95 % intervals by bootstrap over queries{refitted}",
        )
    remark(
        f"All of this is {against}, not against users: it is as good as the model. See "
        f"docs/replay.md.\n{manifest['counters']['ranked']:,} simulated sessions in "
        f"{manifest['seconds']:.1f} s; rows are in {args.out}",
        quiet=args.quiet,
    )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
