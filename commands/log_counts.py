"""The flags of commands that fit click models to a log, and counting the log."""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commands.arguments import add_log_reading, integer, open_probability
from commands.output import remark

if TYPE_CHECKING:
    from bubblerank.fitting.model import FittedModel
    from bubblerank.fitting.read import LogCounts

IN_MEMORY_BYTES = 512 << 20
"""Logs up to this size are counted without Beam, unless Beam flags are given."""
CLICK_MODELS = ("CM", "DCM", "PBM")
TOO_MANY_REJECTS = 4


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add `--log`, `--log-format`, `--map` and `--max-reject-rate`."""
    log = parser.add_argument_group("log")
    log.add_argument(
        "--log", metavar="GLOB", nargs="+", required=True, help="files of sessions, or globs"
    )
    add_log_reading(log)


def add_fitting(group: Any) -> None:
    """Add `--prior`, and the flags of EM."""
    group.add_argument(
        "--prior",
        metavar="C/N",
        help="what is believed of each parameter, as if C of N views had been clicks, or none "
        "(default: 1/2 for CM and DCM, 1/5 for PBM, as in PyClick)",
    )
    group.add_argument(
        "--iterations",
        type=integer(1, 1_000_000),
        metavar="I",
        help="EM iterations of PBM, at most (default: 2000)",
    )
    group.add_argument(
        "--tolerance",
        type=open_probability,
        metavar="E",
        help="EM of PBM has converged when an iteration gains less, in nats (default: 0.001)",
    )
    group.add_argument(
        "--plain-em",
        action="store_true",
        help="EM without acceleration, which may stop far from the maximum",
    )


def count_log(
    args: argparse.Namespace, patterns: list[str], column_map: dict[str, str], beside: Path
) -> "LogCounts":
    """Count a log: a small one here, a big one, or with Beam flags, by a pipeline.

    The pipeline leaves its counts in a temporary folder `beside` the output.
    """
    from pipelines.read_sessions import expand_patterns

    paths = expand_patterns(patterns, args.log_format)
    if not args.beam_flags and _local_bytes(paths) <= IN_MEMORY_BYTES:
        from bubblerank.fitting.read import count_files

        return count_files(paths, args.log_format, column_map)

    from pipelines.engine import choose_engine, run_pipeline
    from pipelines.fit import CountSettings, build, read_counts

    options, engine = choose_engine(args.beam_flags)
    remark(f"counting {len(paths)} files on {engine}", quiet=args.quiet)
    folder = tempfile.mkdtemp(prefix=".bubblerank-counts-", dir=beside)
    try:
        settings = CountSettings(tuple(paths), folder, args.log_format, column_map)
        counters = run_pipeline(lambda pipeline: build(pipeline, settings), options)
        return read_counts(folder, counters)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fit_counts(args: argparse.Namespace, counts: "LogCounts") -> "FittedModel":
    """The model of the flags, fitted to the counts of a log."""
    from bubblerank.errors import UsageError
    from bubblerank.fitting.estimate import fit
    from bubblerank.fitting.observations import Observations
    from bubblerank.fitting.position_based import DEFAULT_ITERATIONS, DEFAULT_TOLERANCE
    from bubblerank.fitting.prior import parse_prior

    by_em = {
        "--iterations": args.iterations,
        "--tolerance": args.tolerance,
        "--plain-em": args.plain_em or None,
    }
    wrong = [flag for flag, value in by_em.items() if value is not None]
    if wrong and args.click_model != "PBM":
        raise UsageError(
            f"{' and '.join(wrong)} belong to EM, {args.click_model} is fitted by counting: "
            "leave out, or take --click-model PBM"
        )
    if counts.sessions == 0:
        raise UsageError(f"no session of the log can be used: {reasons_text(counts)}")
    return fit(
        Observations.of(counts.table),
        args.click_model,
        None if args.prior is None else parse_prior(args.prior),
        args.iterations or DEFAULT_ITERATIONS,
        args.tolerance or DEFAULT_TOLERANCE,
        args.plain_em,
    )


def reasons_text(counts: "LogCounts") -> str:
    """How many records were rejected, and why."""
    why = ", ".join(f"{reason} {number:,}" for reason, number in counts.reasons.items())
    return f"{counts.rejected:,} of {counts.read:,} records rejected" + (f" ({why})" if why else "")


def _local_bytes(paths: list[str]) -> float:
    """The size of all files; infinite when one is on no local disk."""
    files = [Path(path) for path in paths]
    return sum(file.stat().st_size if file.is_file() else float("inf") for file in files)
