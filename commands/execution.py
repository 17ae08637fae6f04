"""Running a pipeline for a command: folder, engine, progress, books, manifest."""

import argparse
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from commands.progress import Progress

if TYPE_CHECKING:
    import apache_beam as beam

_SECONDS_BETWEEN_LOOKS = 0.5


def execute(
    args: argparse.Namespace,
    command: str,
    build: Callable[["beam.Pipeline"], object],
    settings: Mapping[str, Any],
    total: int | None = None,
) -> dict[str, Any]:
    """Run a pipeline into ``args.out`` and give its manifest; a run whose books are off fails."""
    from apache_beam.options.pipeline_options import StandardOptions

    from bubblerank.books import Books
    from bubblerank.run_folder import RunFolder
    from pipelines.engine import choose_engine, run_pipeline

    options, engine = choose_engine(args.beam_flags)
    runner = next(
        (flag.partition("=")[2] for flag in args.beam_flags if flag.startswith("--runner=")),
        StandardOptions.DEFAULT_RUNNER,
    )
    folder = RunFolder.prepare(args.out, args.overwrite)
    started = time.monotonic()
    with folder.filling():
        with watching(total, args.quiet):
            counters = run_pipeline(build, options)
        books = Books.from_counters(counters)
        books.balance()
        return folder.write_manifest(
            command=command,
            settings=settings,
            seed=args.seed,
            runner=runner,
            engine=engine,
            counters={**counters, **asdict(books)},
            seconds=time.monotonic() - started,
        )


@contextmanager
def watching(total: int | None, quiet: bool) -> Iterator[None]:
    """Report on stderr how many sessions have been ranked, while the work inside goes on."""
    from pipelines import pulse

    pulse.reset()
    ended = threading.Event()
    with Progress("sessions", total, quiet=quiet) as progress:

        def look() -> None:
            while not ended.wait(_SECONDS_BETWEEN_LOOKS):
                progress.update(pulse.ranked())

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
