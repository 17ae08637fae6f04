"""Strict reading of the Beam flags that a user gives after `--`.

Beam itself drops what it does not know under a warning, and `PipelineOptions()` reads `sys.argv`:
a mistyped flag would change a run without a word.
"""

import argparse
import difflib
from collections.abc import Sequence
from typing import NoReturn

from apache_beam.options import pipeline_options
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from bubblerank.errors import UsageError, raise_all

_JAVA_FLAGS_OF_FLINK = """
    allow_non_restored_state attach_mode auto_balance_write_files_sharding_enabled
    auto_watermark_interval checkpoint_timeout_millis checkpointing_interval checkpointing_mode
    disable_metrics enable_stable_input_drain execution_mode_for_batch execution_retry_delay
    externalized_checkpoints_enabled fail_on_checkpointing_errors faster_copy
    finish_bundle_before_checkpointing flink_conf_dir force_unaligned_checkpoint_enabled
    job_check_interval_in_secs latency_tracking_interval max_bundle_size
    max_bundle_time_mills min_pause_between_checkpoints number_of_execution_retries
    num_concurrent_checkpoints object_reuse operator_chaining re_iterable_group_by_key_result
    retain_externalized_checkpoints_on_cancellation savepoint_path
    shutdown_sources_after_idle_ms state_backend state_backend_storage_path
    tolerable_checkpoint_failure_number unaligned_checkpoint_enabled
    use_data_stream_for_batch
""".split()
"""Flags that Flink's Java job server reads; Beam's Python side does not list them."""

_RUNNERS_WITH_JAVA_FLAGS = ("flinkrunner", "portablerunner")


class _StrictParser(pipeline_options._BeamArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"Beam flags (after --): {message}")


def parse_beam_flags(flags: Sequence[str]) -> PipelineOptions:
    """The options that `flags` say, all of them known; never those of `sys.argv`.

    An empty list gives Beam's defaults. Every unknown flag is reported, with the nearest known.
    """
    flags = list(flags)
    parser = _StrictParser(allow_abbrev=False, add_help=False, usage=argparse.SUPPRESS)
    for options_class in {str(c): c for c in PipelineOptions.__subclasses__()}.values():
        options_class._add_argparse_args(parser)
    runner = _named_runner(parser.parse_known_args(flags)[0].runner)
    if runner.lower() in _RUNNERS_WITH_JAVA_FLAGS:
        for name in sorted(set(_JAVA_FLAGS_OF_FLINK) - {action.dest for action in parser._actions}):
            parser.add_argument(f"--{name}", nargs="?", const=True)
    _, unknown = parser.parse_known_args(flags)
    known = [flag for action in parser._actions for flag in action.option_strings]
    raise_all(_complaint(word, known, runner) for word in unknown)
    options = PipelineOptions(flags)
    options.view_as(StandardOptions).runner = runner
    return options


def _named_runner(given: str | None) -> str:
    """Beam's spelling of a runner's name; a dotted path is left as it is."""
    if not given:
        return str(StandardOptions.DEFAULT_RUNNER)
    if "." in given:
        return given
    names = {name.lower(): name for name in StandardOptions.KNOWN_RUNNER_NAMES}
    for word in (given.lower(), f"{given.lower()}runner"):
        if word in names:
            return str(names[word])
    raise UsageError(
        f"unknown runner {given!r}{_did_you_mean(given, list(names.values()))}; "
        f"known: {', '.join(sorted(names.values()))}"
    )


def _complaint(word: str, known: list[str], runner: str) -> str:
    if not word.startswith("-"):
        return f"Beam flags (after --): {word!r} belongs to no flag; write --flag=value"
    name = word.split("=", 1)[0]
    return f"unknown Beam flag {name!r} for {runner}{_did_you_mean(name, known)}"


def _did_you_mean(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f": did you mean {close[0]!r}?" if close else ""
