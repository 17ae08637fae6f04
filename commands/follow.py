"""`bubblerank replay --follow`: the files of a folder as one stream, in rounds or on a runner."""

import argparse
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubblerank.errors import RunFailed, UsageError
from commands.arguments import duration
from commands.output import remark

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.follow_folder import Following
    from pipelines.replay import ReplaySettings

ROUNDS, STREAM = "rounds", "stream"
TURN_EVERY_S = 600.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def add_following(parser: argparse.ArgumentParser) -> None:
    """Add the flags that go with `--follow`."""
    group = parser.add_argument_group("following a folder (with --follow)")
    group.add_argument(
        "--idle-timeout", type=duration, metavar="D", help="end when nothing new came for D"
    )
    group.add_argument(
        "--until",
        type=event_time,
        metavar="TIME",
        help="end when the watermark reaches this event time (ISO 8601, UTC where it says no "
        "zone); sessions at or after it are left to a later run",
    )
    group.add_argument(
        "--poll-every",
        type=duration,
        metavar="D",
        help="how often to look; a file counts when two looks find it unchanged (default: 2s)",
    )
    group.add_argument(
        "--lateness",
        type=duration_or_zero,
        metavar="D",
        help="how far the watermark stays behind the newest event time seen (default: 0s)",
    )
    group.add_argument(
        "--turn-every",
        type=duration,
        metavar="D",
        help="event time between turns and files on a streaming runner (default: 10m)",
    )


def event_time(text: str) -> int:
    """An argparse type for a point in time, as microseconds since 1970."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be a time such as 2026-11-16T12:00:00Z, got {text!r}"
        ) from error
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def duration_or_zero(text: str) -> float:
    """An argparse type for a time span that may be nothing."""
    return 0.0 if text in ("0", "0s") else duration(text)


def following_of(args: argparse.Namespace) -> "Following | None":
    """What `--follow` asks for; UsageError for flags that do not go together."""
    flags = ("idle_timeout", "until", "poll_every", "lateness", "turn_every")
    given = [f"--{name.replace('_', '-')}" for name in flags if getattr(args, name) is not None]
    if args.follow is None:
        if given:
            raise UsageError(f"{', '.join(given)}: only with --follow DIR")
        return None
    from pipelines.base_lists import MOST_FREQUENT
    from pipelines.follow_folder import Following

    if args.feedback == "model":
        raise UsageError(
            "--feedback model fits a click model to a whole log: give --log in place of --follow"
        )
    if args.base_lists == MOST_FREQUENT:
        raise UsageError(
            "--follow cannot know the most frequent lists of sessions that are still to come: "
            "give --base-lists a file, or first"
        )
    if "://" not in args.follow:
        if not Path(args.follow).is_dir():
            raise UsageError(f"--follow {args.follow} is no folder: name one that exists")
        if Path(args.follow).resolve() == args.out.resolve():
            raise UsageError(f"--out {args.out} is the followed folder: name another")
    return Following(
        folder=args.follow,
        poll_every_s=2.0 if args.poll_every is None else args.poll_every,
        lateness_us=round((args.lateness or 0.0) * 1_000_000),
        idle_timeout_s=args.idle_timeout,
        until_us=args.until,
    )


def follow(
    args: argparse.Namespace,
    settings: "ReplaySettings",
    following: "Following",
    in_force: Mapping[str, Any],
) -> dict[str, Any]:
    """Follow the folder to its end, and give the manifest."""
    from commands.execution import fill_run
    from pipelines.engine import run_pipeline
    from pipelines.replay import build_following

    options, engine, way = choose_way(args.beam_flags)
    if way == ROUNDS and args.turn_every is not None:
        raise UsageError(
            "--turn-every is for streaming runners: here queries take turns as files come"
        )
    every_s = TURN_EVERY_S if args.turn_every is None else args.turn_every
    told = {"way": way, **asdict(following)}
    if way == STREAM:
        told["turn_every_s"] = every_s

    def work() -> dict[str, int]:
        if way == ROUNDS:
            return _Rounds(args, settings, following, options).run()
        return run_pipeline(
            lambda pipeline: build_following(pipeline, settings, following, every_s), options
        )

    return fill_run(args, "replay", work, {**in_force, "follow": told}, engine)


def choose_way(flags: list[str]) -> "tuple[PipelineOptions, str, str]":
    """Options, engine, and how a folder is followed on it.

    The local engines cannot keep event-time order over a source without end: there a folder is
    followed in rounds, each of them bounded. Every other runner gets the unbounded source.
    """
    from apache_beam.options.pipeline_options import StandardOptions

    from pipelines.engine import BOUNDED_ENGINE, STREAMING_ENGINE, choose_engine

    options, engine = choose_engine(flags)
    local = engine in (BOUNDED_ENGINE, STREAMING_ENGINE)
    if local and options.view_as(StandardOptions).streaming:
        raise UsageError(
            "--streaming on DirectRunner cannot follow a folder: leave it out to follow in "
            "rounds, or name a runner that keeps event-time order, as in --runner=FlinkRunner"
        )
    if local:
        return options, engine, ROUNDS
    return *choose_engine(flags, streaming=True), STREAM


class _Rounds:
    """The rounds of one run, one after another."""

    def __init__(
        self,
        args: argparse.Namespace,
        settings: "ReplaySettings",
        following: "Following",
        options: "PipelineOptions",
    ) -> None:
        from bubblerank.run_folder import TEMPORARY
        from pipelines.folder_watch import FolderWatch
        from pipelines.rounds import RoundSettings

        self._quiet = args.quiet
        self._following = following
        self._options = options
        self._watch = FolderWatch(following.folder, settings.log_format)
        self._carries = Path(args.out) / TEMPORARY
        self._next = RoundSettings(settings, following)
        self._carried = 0
        self._counters: Counter[str] = Counter()

    def run(self) -> dict[str, int]:
        """Rounds until nothing comes any more, the end is reached, or somebody asks to end."""
        following = self._following
        with asking_to_end() as asked:
            quiet_since = time.monotonic()
            while not asked.is_set():
                found = self._watch.look()
                if found:
                    self._round(found)
                if following.reaches_end(self._next.newest_us):
                    break
                now = time.monotonic()
                if found or self._watch.stirs:
                    quiet_since = now
                idle_s = following.idle_timeout_s
                if idle_s is not None and now - quiet_since >= idle_s:
                    break
                asked.wait(following.poll_every_s)
            if asked.is_set():
                remark("ending: final statistics; once more to break off", quiet=self._quiet)
            self._round([], last=True)
        return dict(self._counters)

    def _round(self, files: list[str], last: bool = False) -> None:
        from pipelines.engine import run_pipeline
        from pipelines.rounds import CARRIED_IN, CARRIED_OUT, NEWEST, build_round, take

        number = self._counters["rounds"] + 1
        carry_to = None if last else str(self._carries / f"carry-{number}")
        settings = replace(self._next, files=tuple(files), carry_to=carry_to)
        counters = run_pipeline(lambda pipeline: build_round(pipeline, settings), self._options)
        newest_us = take(counters, NEWEST)
        arrived, self._carried = (
            self._carried - take(counters, CARRIED_IN),
            take(counters, CARRIED_OUT),
        )
        if arrived != 0:
            raise RunFailed(f"{abs(arrived)} queries were lost between two rounds: run it again")
        if settings.carried is not None:
            shutil.rmtree(settings.carried, ignore_errors=True)
        self._next = replace(self._next, newest_us=newest_us, carried=carry_to)
        self._counters.update(counters)
        self._counters.update({"rounds": 1, "files": len(files)})
        if files:
            word = "file" if len(files) == 1 else "files"
            remark(
                f"{len(files):,} {word}, {counters.get('read', 0):,} sessions read, "
                f"{counters.get('ranked', 0):,} ranked",
                quiet=self._quiet,
            )


@contextmanager
def asking_to_end() -> Iterator[threading.Event]:
    """The first Ctrl-C, or SIGTERM, asks to end well; the next one does what it did before."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, frame: object) -> None:
        restore()
        asked.set()

    for number in numbers:
        signal.signal(number, ask)
    try:
        yield asked
    finally:
        restore()
