import subprocess
import sys

import apache_beam as beam
import pytest
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import DirectOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.testing.test_stream import TestStream

from bubblerank.errors import RunFailed, UsageError
from pipelines.engine import choose_engine, run_pipeline


def test_direct_runner_means_the_fn_api_engine_and_is_the_default():
    for flags in ([], ["--runner=DirectRunner"], ["--runner", "direct"]):
        options, engine = choose_engine(flags)
        assert engine == options.view_as(StandardOptions).runner == "FnApiRunner"


def test_a_local_streaming_run_takes_the_engine_that_keeps_event_time():
    assert choose_engine(["--streaming"])[1] == "BundleBasedDirectRunner"
    options, engine = choose_engine([], streaming=True)
    assert engine == "BundleBasedDirectRunner"
    assert options.view_as(StandardOptions).streaming


def test_other_runners_pass_through_with_their_own_flags():
    options, engine = choose_engine(
        [
            "--runner=FlinkRunner",
            "--flink_master=localhost:8081",
            "--checkpointing_interval=5000",
            "--finish_bundle_before_checkpointing",
            "--streaming",
        ]
    )
    assert engine == "FlinkRunner"
    kept = options.get_all_options(retain_unknown_options=True)
    assert kept["checkpointing_interval"] == "5000"
    assert kept["finish_bundle_before_checkpointing"] is True


def test_every_unknown_flag_is_refused_with_the_nearest_known_one():
    with pytest.raises(UsageError) as caught:
        choose_engine(["--direct_num_worker=2", "--streeming", "word"])
    message = str(caught.value)
    assert "did you mean '--direct_num_workers'?" in message
    assert "did you mean '--streaming'?" in message
    assert "'word' belongs to no flag" in message


def test_flags_of_flink_are_unknown_to_the_local_engine():
    with pytest.raises(UsageError, match="--checkpointing_interval"):
        choose_engine(["--checkpointing_interval=5000"])


def test_a_mistyped_runner_or_value_is_a_usage_error():
    with pytest.raises(UsageError, match="did you mean 'FlinkRunner'"):
        choose_engine(["--runner=FlinkRuner"])
    with pytest.raises(UsageError, match="direct_num_workers"):
        choose_engine(["--direct_num_workers=two"])
    with pytest.raises(UsageError, match="got -1"):
        choose_engine(["--direct_num_workers=-1"])
    with pytest.raises(UsageError, match="cannot be used here"):
        run_pipeline(lambda p: None, choose_engine(["--runner=no.such.Runner"])[0])


def test_the_command_line_of_the_process_is_never_read(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "--streaming", "--runner=FlinkRunner"])
    options, engine = choose_engine()
    assert engine == "FnApiRunner"
    assert not options.view_as(StandardOptions).streaming


def test_the_private_state_cache_switch_still_exists_and_is_switched_off(monkeypatch):
    assert isinstance(worker_handlers.STATE_CACHE_SIZE_MB, int)
    monkeypatch.setattr(worker_handlers, "STATE_CACHE_SIZE_MB", 100)
    run_pipeline(lambda p: p | beam.Create([1]), choose_engine()[0])
    assert worker_handlers.STATE_CACHE_SIZE_MB == 0


class _Count(beam.DoFn):
    def __init__(self):
        self._read = Metrics.counter("books", "read")
        self._other = Metrics.counter("elsewhere", "read")

    def process(self, element):
        self._read.inc(element)
        self._other.inc()
        yield element


@pytest.mark.parametrize("flags", [[], ["--direct_num_workers=2"], ["--streaming"]])
def test_the_counters_of_the_books_come_back_summed_over_steps(flags):
    def build(p):
        p | beam.Create([1, 2, 3]) | "A" >> beam.ParDo(_Count()) | "B" >> beam.ParDo(_Count())

    assert run_pipeline(build, choose_engine(flags)[0]) == {"read": 12}


def test_the_counters_of_a_stream_hold_every_bundle():
    def build(p):
        stream = TestStream()
        for i in range(7):
            stream = stream.add_elements([i]).advance_watermark_to(i)
        p | stream.advance_watermark_to_infinity() | beam.ParDo(_Count())

    assert run_pipeline(build, choose_engine(["--streaming"])[0]) == {"read": 21}


def test_two_workers_run_as_threads_unless_told_otherwise():
    mode = choose_engine(["--direct_num_workers=2"])[0].view_as(DirectOptions)
    assert (mode.direct_num_workers, mode.direct_running_mode) == (2, "multi_threading")
    told = choose_engine(["--direct_num_workers=2", "--direct_running_mode=multi_processing"])[0]
    assert told.view_as(DirectOptions).direct_running_mode == "multi_processing"
    assert choose_engine()[0].view_as(DirectOptions).direct_running_mode == "in_memory"


@pytest.mark.parametrize("flags", [[], ["--direct_num_workers=2"], ["--streaming"]])
@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError("query 'é' has no items"), RunFailed, "ValueError: query 'é' has no items"),
        (RunFailed("12 rows\nare gone"), RunFailed, "12 rows\nare gone"),
        (UsageError("no such file"), UsageError, "no such file"),
        (ZeroDivisionError(), RunFailed, "ZeroDivisionError"),
    ],
)
def test_a_failing_step_is_told_by_its_root_cause_alone(flags, error, kind, message, caplog):
    def fail(_):
        raise error

    with pytest.raises(kind) as caught:
        run_pipeline(lambda p: p | beam.Create([1]) | beam.Map(fail), choose_engine(flags)[0])
    text = str(caught.value)
    assert text.endswith(message)
    assert "Traceback" not in text and "while running" not in text
    assert not caplog.records


def test_an_error_in_building_is_not_disguised():
    def build(_):
        raise UsageError("positions must be at least 1")

    with pytest.raises(UsageError, match="positions"):
        run_pipeline(build, choose_engine()[0])


def test_rows_that_were_counted_in_and_not_read_back_fail_the_run():
    def build(p):
        p | beam.Create([5]) | beam.Map(lambda n: Metrics.counter("books", "rows_display").inc(n))

    with pytest.raises(RunFailed, match="5 display rows were to be written and 0 are readable"):
        run_pipeline(build, choose_engine()[0])


def test_the_engine_never_reaches_for_the_network():
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise RuntimeError('network')\n"
        "socket.create_connection = refuse\n"
        "import urllib.request; urllib.request.urlopen = refuse\n"
        "import apache_beam as beam\n"
        "from pipelines.engine import choose_engine, run_pipeline\n"
        "run_pipeline(lambda p: p | beam.Create([1]), choose_engine()[0])\n"
        "assert 'apache_beam.runners.portability.prism_runner' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
