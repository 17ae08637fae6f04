"""`bubblerank replay`: a click log as a stream through BubbleRank."""

import argparse
from typing import Any

from bubblerank.errors import UsageError
from commands.arguments import (
    add_log_reading,
    add_output,
    add_ranker,
    add_run_folder,
    add_seed,
    describe_ranker,
    duration,
    integer,
    ranker_config,
    ranker_settings,
    refuse_nonempty,
)
from commands.follow import add_following, follow, following_of
from commands.output import remark
from commands.replay_model import add_model_flags, refuse_model_flags, run_model
from commands.replay_report import report
from commands.replay_usage import show_usage, usage_conclusion

EXAMPLES = """\
examples:
  bubblerank replay --log 'logs/*.parquet' --base-lists lists.jsonl --out runs/monday
  bubblerank replay --log 'logs/*.avro' --feedback match --out runs/matched
  bubblerank replay --log tuesday.jsonl --base-lists lists.jsonl --resume runs/monday \\
      --out runs/tuesday
  bubblerank replay --log clicks.parquet --map query=q,items=urls --snapshot-every 1d \\
      --out runs/mapped -- --direct_num_workers=2
  bubblerank replay --follow incoming/ --base-lists lists.jsonl --lateness 5m \\
      --idle-timeout 1h --out runs/live
  bubblerank replay --log 'logs/*.tsv' --feedback model --click-model PBM --out runs/fitted

Feedback `logged` learns from every list that the ranker could have displayed: for logs that it,
or another ranker that exchanges neighbours at random, produced. Feedback `match` learns only
from lists that the ranker's own coins draw. Feedback `model` is the paper's protocol: fit a click
model to the log, and run BubbleRank and the production lists against the fitted users.
docs/replay.md says which question each of them answers.
Writes displays/, statistics/, rejects/ (where there are any) and run.json; with `model`
metrics/, statistics/ and run.json.
Exit codes: 0 fine, 1 failed, 2 usage, 4 more rejects than --max-reject-rate.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `replay`."""
    log = parser.add_argument_group("log")
    source = log.add_mutually_exclusive_group(required=True)
    source.add_argument("--log", metavar="GLOB", nargs="+", help="files of sessions, or globs")
    source.add_argument(
        "--follow", metavar="DIR", help="a folder to watch for new files of sessions"
    )
    add_log_reading(log)
    log.add_argument(
        "--duplicate-memory",
        type=integer(0, 1_000_000),
        default=64,
        metavar="M",
        help="session ids that a query remembers, to tell late duplicates (default: 64)",
    )
    log.add_argument(
        "--block-sessions",
        type=integer(1, 10_000_000),
        default=16_384,
        metavar="B",
        help="sessions in an element of the stream; changes no row (default: 16384)",
    )
    add_following(parser)
    learning = parser.add_argument_group("learning")
    learning.add_argument(
        "--feedback",
        choices=("logged", "match", "model"),
        default="logged",
        help="what a logged list may teach (default: logged)",
    )
    learning.add_argument(
        "--base-lists",
        metavar="F|most-frequent|first",
        default="most-frequent",
        help="each query's production list: a file of records with query and items (problem "
        "files are such), its most frequent list, or its first (default: most-frequent)",
    )
    learning.add_argument(
        "--resume", metavar="STATISTICS", help="go on from the statistics of this earlier run"
    )
    learning.add_argument(
        "--snapshot-every",
        type=duration,
        metavar="D",
        help="also write statistics each D of event time, as in 90s, 15m, 6h, 1d",
    )
    add_model_flags(parser)
    add_seed(parser)
    add_ranker(parser, default_horizon="auto; with --feedback model: --steps")
    add_run_folder(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Replay, then print the books."""
    refuse_nonempty(args.out, args.overwrite)
    following = following_of(args)
    if args.feedback == "model":
        return run_model(args, column_map(args.map))
    refuse_model_flags(args)
    config = ranker_config(args, None)

    from bubblerank.sessions.readers import check_column_map
    from bubblerank.stream.replay import Replay
    from commands.execution import execute
    from pipelines.base_lists import FIRST, MOST_FREQUENT, read_base_lists, statistics_files
    from pipelines.read_sessions import expand_patterns
    from pipelines.replay import ReplaySettings, build

    columns = check_column_map(column_map(args.map))
    given = args.base_lists not in (MOST_FREQUENT, FIRST)
    settings = ReplaySettings(
        replay=Replay(
            config=config,
            feedback=args.feedback,
            first_list=args.base_lists == FIRST,
            seed=args.seed,
            snapshot_every_us=round((args.snapshot_every or 0) * 1_000_000),
            duplicate_memory=args.duplicate_memory,
        ),
        logs=tuple(expand_patterns(args.log, args.log_format)) if args.log else (),
        out=str(args.out),
        base_lists=read_base_lists(args.base_lists) if given else None,
        resume=tuple(statistics_files(args.resume)) if args.resume else (),
        log_format=args.log_format,
        column_map=columns,
        block_sessions=args.block_sessions,
    )
    files = f"{len(settings.logs):,} {'file' if len(settings.logs) == 1 else 'files'}"
    if following is not None:
        files = f"following {following.folder}"
    remark(
        f"{files}, feedback {args.feedback}, base lists: {args.base_lists}\n"
        f"{describe_ranker(config)}, seed {args.seed}",
        quiet=args.quiet,
    )
    in_force = _in_force(args, settings)
    if following is not None:
        manifest = follow(args, settings, following, in_force)
    else:
        manifest = execute(
            args,
            "replay",
            lambda pipeline: build(pipeline, settings),
            in_force,
            conclude=usage_conclusion(args),
        )
    show_usage(args, manifest)
    return report(args, manifest)


def column_map(text: str | None) -> dict[str, str]:
    """`ours=theirs,...` as a mapping."""
    pairs = [pair.partition("=") for pair in text.split(",")] if text else []
    bad = [ours for ours, sign, theirs in pairs if not (ours and sign and theirs)]
    if bad or len({ours for ours, _, _ in pairs}) != len(pairs):
        raise UsageError(f"--map {text} must be ours=theirs,... with each of ours once")
    return {ours: theirs for ours, _, theirs in pairs}


def _in_force(args: argparse.Namespace, settings: Any) -> dict[str, Any]:
    config = settings.replay.config
    return {
        "logs": list(settings.logs),
        "log_format": args.log_format,
        "column_map": dict(settings.column_map),
        "feedback": args.feedback,
        "base_lists": args.base_lists,
        "resume": args.resume,
        "snapshot_every_seconds": args.snapshot_every,
        "duplicate_memory": args.duplicate_memory,
        **ranker_settings(config),
    }
