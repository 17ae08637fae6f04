"""`bubblerank fit`: click models from a log, written as problems."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commands.arguments import add_output, integer
from commands.log_counts import (
    CLICK_MODELS,
    TOO_MANY_REJECTS,
    add_fitting,
    add_log,
    count_log,
    fit_counts,
    reasons_text,
)
from commands.output import remark, show_json, show_rows

if TYPE_CHECKING:
    from bubblerank.fitting.evaluate import Evaluation
    from bubblerank.fitting.model import FittedModel
    from bubblerank.fitting.read import LogCounts

EXAMPLES = """\
examples:
  bubblerank fit --log 'logs/*.tsv' --click-model PBM --queries 100 --out problems.jsonl
  bubblerank fit --log monday.parquet --test tuesday.parquet --click-model DCM --out dcm.jsonl
  bubblerank fit --log 'logs/*.avro' --click-model CM --prior none --out cm.parquet \\
      -- --direct_num_workers=2

Each query's most frequent list becomes its R_0. Attraction is by query and item, parameters of
positions are shared by all queries of the log. Every parameter is (C + clicks) / (N + views)
with the --prior C/N; what the log never shows has C/N. A PBM is scaled to max examination 1.
Perplexity at a rank is 2 ** -(mean log2 probability of what was seen there), not conditioned on
other clicks; the overall one is the mean over ranks. Sessions are counted as they come:
duplicates count twice. The result is for `bubblerank simulate --problems`.
Exit codes: 0 fine, 1 failed, 2 usage, 4 more rejects than --max-reject-rate.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `fit`."""
    add_log(parser)
    fitting = parser.add_argument_group("fitting")
    fitting.add_argument(
        "--click-model", choices=CLICK_MODELS, required=True, help="which click model"
    )
    fitting.add_argument(
        "--queries",
        type=integer(1),
        metavar="N",
        help="write only the N most frequent queries (default: all)",
    )
    fitting.add_argument(
        "--test", metavar="GLOB", nargs="+", help="also evaluate on these files of sessions"
    )
    add_fitting(fitting)
    parser.add_argument(
        "--out",
        metavar="F",
        type=Path,
        required=True,
        help="file of problems to write: .jsonl, .avro or .parquet",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace --out where it exists")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Fit, write the problems, print what was found."""
    from bubblerank.fitting.evaluate import evaluate
    from bubblerank.fitting.observations import Observations
    from bubblerank.fitting.problems import fitted_problems
    from bubblerank.problems import write_problems
    from commands.arguments import refuse_existing_file
    from commands.replay import column_map

    refuse_existing_file(args.out, args.overwrite)
    columns = column_map(args.map)
    beside = args.out.parent
    counts = count_log(args, args.log, columns, beside)
    model = fit_counts(args, counts)
    results = {"train": evaluate(model, model.observations)}
    tested = None
    if args.test:
        tested = count_log(args, args.test, columns, beside)
        if tested.sessions:
            results["test"] = evaluate(model, Observations.of(tested.table))
    problems = fitted_problems(model, args.queries)
    write_problems(args.out, [fitted.problem for fitted in problems])
    _show(args, counts, model, results, len(problems))
    if tested is not None and tested.rejected:
        remark(f"test: {reasons_text(tested)}", quiet=args.quiet)
    rate = counts.rejected / counts.read
    if rate > args.max_reject_rate:
        remark(
            f"{rate:.2%} of the log was rejected, --max-reject-rate is {args.max_reject_rate:.2%}"
        )
        return TOO_MANY_REJECTS
    return 0


def _show(
    args: argparse.Namespace,
    counts: "LogCounts",
    model: "FittedModel",
    results: "dict[str, Evaluation]",
    written: int,
) -> None:
    seen = model.observations
    by_position = None if model.by_position is None else model.by_position.tolist()
    summary: dict[str, Any] = {
        "problems": str(args.out),
        "click_model": model.click_model,
        "prior": str(model.prior),
        "read": counts.read,
        "rejected": counts.rejected,
        "reasons": dict(counts.reasons),
        "click_outside_list": counts.clicks_outside,
        "sessions": counts.sessions,
        "queries": len(seen.queries),
        "queries_written": written,
        "lists": len(seen.list_query),
        "pairs": len(seen.pair_keys),
        "mean_attraction": float(model.attraction.mean()),
        "by_position": by_position,
        "iterations": [
            {"with_prior": step.objective, "log_likelihood": step.log_likelihood}
            for step in model.iterations
        ],
        "converged": model.converged,
    }
    rows = [_result_row(name, result) for name, result in results.items()]
    if args.format == "json":
        show_json({**summary, "evaluation": rows})
    else:
        _remark_iterations(args, model)
        if by_position is not None:
            name = "v(k)" if model.click_model == "DCM" else "chi(k)"
            ranks = [
                {"position": rank, name: value} for rank, value in enumerate(by_position, start=1)
            ]
            show_rows(ranks, form="table", title=f"{model.click_model}, by position")
        flat = [
            {key: value for key, value in row.items() if key != "perplexity_by_rank"}
            for row in rows
        ]
        show_rows(flat, form="table", title=f"{model.click_model}, prior {model.prior}")
        ranked = [
            {"rank": rank, **{row["on"]: value for row, value in zip(rows, values, strict=True)}}
            for rank, values in enumerate(_aligned(rows), start=1)
        ]
        show_rows(ranked, form="table", title="Perplexity by rank")
    remark(
        f"{counts.sessions:,} sessions, {summary['queries']:,} queries, {summary['pairs']:,} "
        f"query-item pairs, mean attraction {summary['mean_attraction']:.4f}; "
        f"{reasons_text(counts)}\n{written:,} problems are in {args.out}\n"
        f"next: bubblerank simulate --problems {args.out} --steps 100000 --out RUN",
        quiet=args.quiet,
    )


def _result_row(name: str, result: "Evaluation") -> dict[str, Any]:
    return {
        "on": name,
        "sessions": result.sessions,
        "log_likelihood": result.log_likelihood,
        "per_session": result.log_likelihood_per_session,
        "perplexity": result.perplexity,
        "unseen": result.unseen,
        "perplexity_by_rank": list(result.perplexity_by_rank),
    }


def _aligned(rows: list[dict[str, Any]]) -> list[list[float | None]]:
    """The perplexities of each rank, a column for each evaluation; None below a shorter one."""
    columns = [row["perplexity_by_rank"] for row in rows]
    longest = max(map(len, columns))
    padded = [column + [None] * (longest - len(column)) for column in columns]
    return [list(values) for values in zip(*padded, strict=True)]


def _remark_iterations(args: argparse.Namespace, model: "FittedModel") -> None:
    """EM's way, at log-spaced iterations and the last."""
    count = len(model.iterations)
    for number, step in enumerate(model.iterations):
        if number & (number - 1) == 0 or number == count - 1:
            remark(
                f"EM iteration {number:>5}: log-likelihood with the prior {step.objective:,.3f}, "
                f"of the log alone {step.log_likelihood:,.3f}",
                quiet=args.quiet,
            )
    if not model.converged:
        remark(f"EM has not converged after {count - 1} iterations: give more --iterations")
