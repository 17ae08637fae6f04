"""Running a pipeline for a command: folder, engine, progress, books, manifest."""

import argparse
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from commands.output import remark
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
    conclude: Callable[[], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Run a pipeline into ``args.out`` and give its manifest; a run whose books are off fails.

    ``conclude`` gives what else the manifest is to hold, when all rows have been written.
    """
    from pipelines.engine import choose_engine, run_pipeline

    options, engine = choose_engine(args.beam_flags)

    def work() -> dict[str, int]:
        with watching(total, args.quiet):
            return run_pipeline(build, options)

    return fill_run(args, command, work, settings, engine, conclude)


def fill_run(
    args: argparse.Namespace,
    command: str,
    work: Callable[[], dict[str, int]],
    settings: Mapping[str, Any],
    engine: str,
    conclude: Callable[[], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Let ``work`` fill ``args.out`` and give its counters; then the books and the manifest."""
    from apache_beam.options.pipeline_options import StandardOptions

    from bubblerank.books import Books
    from bubblerank.run_folder import RunFolder

    runner = next(
        (flag.partition("=")[2] for flag in args.beam_flags if flag.startswith("--runner=")),
        StandardOptions.DEFAULT_RUNNER,
    )
    folder = RunFolder.prepare(args.out, args.overwrite)
    started = time.monotonic()
    with folder.filling():
        with interruptible(), telling_of_compilation(args.quiet):
            counters = work()
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
            **(conclude() if conclude else {}),
        )


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends in a KeyboardInterrupt, also where an engine makes another error of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = threading.Event()

    def interrupt(number: int, frame: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if interrupted.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted.is_set():
        raise KeyboardInterrupt


@contextmanager
def telling_of_compilation(quiet: bool) -> Iterator[None]:
    """Say once why nothing seems to happen, should numba compile instead of taking its cache."""
    from numba.core import event

    told = threading.Event()

    class Listener(event.Listener):
        def on_start(self, event: object) -> None:
            if not told.is_set():
                told.set()
                remark(
                    "compiling kernels for this machine: about 10 s, only this once", quiet=quiet
                )

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield


@contextmanager
def watching(total: int | None, quiet: bool) -> Iterator[None]:
    """Report on stderr how far the work inside has come: sessions read, then sessions ranked."""
    from pipelines import pulse

    pulse.reset()
    ended = threading.Event()
    with Progress("sessions ranked", total, quiet=quiet) as progress:

        def look() -> None:
            while not ended.wait(_SECONDS_BETWEEN_LOOKS):
                read, ranked = pulse.read(), pulse.ranked()
                if ranked:
                    progress.update(ranked, total=total or read)
                elif read:
                    progress.update(read, what="sessions read")

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
