"""Which engine runs a pipeline, decided in one place, and running it.

Beam's `DirectRunner` is a switch between three engines that differ in what they can do, and it
may try to download one of them. Here it means:

- bounded pipelines: FnApiRunner, in this process. `--direct_num_workers=N` gives it N threads
  (`--direct_running_mode=multi_processing` is accepted, and slower); stateful steps stay on one.
- `--streaming`: BundleBasedDirectRunner, the one local engine that runs TestStream and keeps
  event time in order: FnApiRunner fires event-time timers early when its input is unbounded.
  It cannot run PeriodicImpulse or MatchContinuously: give `--runner=PrismRunner` or a cluster's
  runner for sources built on them.

Every other runner is passed through as given.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apache_beam as beam
from apache_beam.metrics.metric import MetricsFilter
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.direct import executor
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.fn_api_runner import fn_runner, worker_handlers
from apache_beam.runners.portability.portable_runner import JobServiceHandle
from apache_beam.runners.runner import PipelineRunner, PipelineState, create_runner

from bubblerank.errors import RunFailed, UsageError
from pipelines.beam_flags import parse_beam_flags
from pipelines.failures import as_run_failure

BOUNDED_ENGINE = "FnApiRunner"
STREAMING_ENGINE = "BundleBasedDirectRunner"
_LOCAL_ENGINES = (BOUNDED_ENGINE, STREAMING_ENGINE)


def choose_engine(
    flags: Sequence[str] = (), *, streaming: bool = False
) -> tuple[PipelineOptions, str]:
    """The options of the Beam flags after `--`, and the engine's name for the manifest."""
    options = parse_beam_flags(flags)
    standard = options.view_as(StandardOptions)
    standard.streaming = standard.streaming or streaming
    if standard.runner == StandardOptions.DEFAULT_RUNNER:
        standard.runner = STREAMING_ENGINE if standard.streaming else BOUNDED_ENGINE
    if standard.runner == BOUNDED_ENGINE:
        _use_threads_for_workers(options, flags)
    return options, str(standard.runner)


def run_pipeline(
    build: Callable[[beam.Pipeline], object], options: PipelineOptions
) -> dict[str, int]:
    """Build a pipeline, run it to its end, and return the counters of namespace `books`.

    A failure is a RunFailed that tells the root cause alone; Beam's own text shows when the
    logger `apache_beam` is at DEBUG.
    """
    engine = options.view_as(StandardOptions).runner
    pipeline = beam.Pipeline(runner=_create(engine, options), options=options)
    build(pipeline)
    try:
        with _without_walls_of_text(engine), _counters_of_every_bundle():
            result = pipeline.run()
            state = result.wait_until_finish() or result.state
    except Exception as error:
        raise as_run_failure(error) from error
    if state != PipelineState.DONE:
        raise RunFailed(f"the pipeline ended in state {state} on {engine}: see the runner's log")
    counters = books_of(result)
    if engine in _LOCAL_ENGINES:
        _require_written(counters)
    return counters


def books_of(result: object) -> dict[str, int]:
    """The counters of namespace `books`, each summed over the steps that touch it."""
    found = result.metrics().query(  # type: ignore[attr-defined]
        MetricsFilter().with_namespace("books")
    )
    totals: dict[str, int] = {}
    for counter in found["counters"]:
        name = counter.key.metric.name
        totals[name] = totals.get(name, 0) + int(counter.result or 0)
    return totals


def _require_written(counters: dict[str, int]) -> None:
    for name, rows in counters.items():
        if name.startswith("rows_") and counters.get(f"written_{name}", 0) != rows:
            raise RunFailed(
                f"{rows} {name.removeprefix('rows_')} rows were to be written and "
                f"{counters.get(f'written_{name}', 0)} are readable: the run is void"
            )


@contextmanager
def _without_walls_of_text(engine: str) -> Iterator[None]:
    """Local engines log each failure with several tracebacks before raising it: not again."""
    logger = logging.getLogger("apache_beam")
    level = logger.level
    if engine in _LOCAL_ENGINES and not logger.isEnabledFor(logging.DEBUG):
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _counters_of_every_bundle() -> Iterator[None]:
    """Mend BundleBasedDirectRunner's counters, which hold each step's first bundle only.

    Its state sampler hands the first bundle's metrics container to all later ones; forgetting
    the sampler's states before each bundle gives every bundle its own. A test keeps watch.
    """
    original = executor.TransformExecutor.call

    def call(self: executor.TransformExecutor, state_sampler: Any) -> Any:
        state_sampler._states_by_name.clear()
        return original(self, state_sampler)

    executor.TransformExecutor.call = call
    try:
        yield
    finally:
        executor.TransformExecutor.call = original


def _create(engine: str, options: PipelineOptions) -> PipelineRunner:
    if engine == STREAMING_ENGINE:
        return BundleBasedDirectRunner()
    if engine != BOUNDED_ENGINE:
        try:
            return create_runner(engine)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(f"runner {engine!r} cannot be used here: {error}") from error
    _switch_off_state_cache()
    encoded = JobServiceHandle.encode_pipeline_options(options.get_all_options())
    info = beam_provision_api_pb2.ProvisionInfo(pipeline_options=encoded)
    return fn_runner.FnApiRunner(provision_info=fn_runner.ExtendedProvisionInfo(info))


def _switch_off_state_cache() -> None:
    """Each (key, cell, bundle) in the cache costs 2 ms of sizing: 60 times the read it saves.

    No public option reaches the embedded worker, hence the private name; a test keeps watch.
    """
    worker_handlers.STATE_CACHE_SIZE_MB = 0


def _use_threads_for_workers(options: PipelineOptions, flags: Sequence[str]) -> None:
    direct = options.view_as(DirectOptions)
    workers = direct.direct_num_workers
    if workers is not None and workers < 0:
        raise UsageError(f"--direct_num_workers must be 0 (one per core) or more, got {workers}")
    mode_given = any(flag.startswith("--direct_running_mode") for flag in flags)
    if workers != 1 and not mode_given:
        direct.direct_running_mode = "multi_threading"
