"""Flags that several commands share, and the checks that go with them."""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubblerank.errors import UsageError

if TYPE_CHECKING:
    from bubblerank.config import RankerConfig

MAX_INTEGER = 2**63 - 1
SECONDS_IN = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def integer(minimum: int, maximum: int = MAX_INTEGER) -> Callable[[str], int]:
    """An argparse type for whole numbers within bounds; `1e6` and `1_000_000` are understood."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = _integer_from_float(text)
        if not minimum <= value <= maximum:
            low, high = f"at least {minimum}", f"at most {maximum}"
            within = f"{minimum} to {maximum}" if maximum < MAX_INTEGER else low
            bound = high if value > MAX_INTEGER else within
            raise argparse.ArgumentTypeError(f"must be {bound}, got {text}")
        return value

    return parse


def _integer_from_float(text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(value)


def horizon(text: str) -> int | str:
    """An argparse type for `--horizon`: a number of sessions, or `auto`."""
    return "auto" if text == "auto" else integer(1)(text)


def open_probability(text: str) -> float:
    """An argparse type for a number strictly between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must lie in (0, 1), got {text}")
    return value


def probability(text: str) -> float:
    """An argparse type for a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"must lie in [0, 1], got {text}")
    return value


def duration(text: str) -> float:
    """An argparse type for a time span in seconds: a number with s, m, h or d behind it."""
    unit = SECONDS_IN.get(text[-1:], math.nan)
    try:
        value = float(text[:-1]) * unit
    except ValueError:
        value = math.nan
    if not 0.001 <= value < math.inf:
        raise argparse.ArgumentTypeError(
            f"must be a number with s, m, h or d behind it, at least 0.001s, got {text!r}"
        )
    return value


def add_run_folder(parser: argparse.ArgumentParser) -> None:
    """Add `--out` and `--overwrite` for the folder that a command fills."""
    group = parser.add_argument_group("run folder")
    group.add_argument(
        "--out", metavar="RUN", type=Path, required=True, help="folder to write the run into"
    )
    group.add_argument(
        "--overwrite", action="store_true", help="replace what a non-empty --out holds"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `--format` and `--quiet` for what goes to the terminal."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--format",
        choices=("table", "json"),
        default="table",
        help="how results are printed on stdout (default: table)",
    )
    group.add_argument("--quiet", action="store_true", help="no progress and no remarks on stderr")


def add_log_reading(group: argparse._ArgumentGroup) -> None:
    """Add `--log-format`, `--map` and `--max-reject-rate`: how the records of a log are read."""
    group.add_argument(
        "--log-format",
        choices=("avro", "parquet", "jsonl", "yandex"),
        help="the format of the log (default: by each file's extension)",
    )
    group.add_argument(
        "--map",
        metavar="OURS=THEIRS,...",
        help="the log's names for our columns, as in query=q,items=urls",
    )
    group.add_argument(
        "--max-reject-rate",
        type=probability,
        default=1.0,
        metavar="R",
        help="exit with code 4 when a larger share of the log is rejected (default: 1)",
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add `--seed`, from which every random draw follows."""
    parser.add_argument(
        "--seed",
        type=integer(-(2**63)),
        default=0,
        metavar="S",
        help="the same seed gives the same rows (default: 0)",
    )


def add_ranker(parser: argparse.ArgumentParser, *, default_horizon: str) -> None:
    """Add the flags of BubbleRank; `default_horizon` says in words what no `--horizon` means."""
    group = parser.add_argument_group("ranker")
    group.add_argument(
        "--horizon",
        type=horizon,
        metavar="N|auto",
        help="sessions to plan for: delta = N ** -4, also past N; auto: start small and double "
        f"(default: {default_horizon})",
    )
    group.add_argument(
        "--delta",
        type=open_probability,
        metavar="D",
        help="a fixed delta in (0, 1) in place of --horizon",
    )
    group.add_argument(
        "--positions",
        type=integer(1, 1000),
        metavar="K",
        help="how many items are displayed (default: as the problem or the list has)",
    )
    group.add_argument(
        "--freeze-decided",
        action="store_true",
        help="stop learning about a pair once its order is decided",
    )


def add_top(parser: argparse.ArgumentParser) -> None:
    """Add `--top`, for commands that know how attractive items are."""
    parser.add_argument(
        "--top",
        type=integer(1, 1000),
        default=5,
        metavar="T",
        help="positions that regret, reward and NDCG look at (default: 5)",
    )


def ranker_config(args: argparse.Namespace, default_horizon: int | None) -> "RankerConfig":
    """The ranker's settings from its flags; a default horizon of None is the doubling trick."""
    from bubblerank.config import RankerConfig

    if args.horizon is not None and args.delta is not None:
        raise UsageError(
            f"--horizon {args.horizon} and --delta {args.delta} contradict each other: "
            "give one of them"
        )
    planned = default_horizon if args.horizon is None else args.horizon
    return RankerConfig(
        positions=args.positions,
        horizon=None if planned == "auto" else planned,
        delta=args.delta,
        freeze_decided=args.freeze_decided,
    )


def ranker_settings(config: "RankerConfig") -> dict[str, Any]:
    """The ranker's settings in force, for the manifest."""
    return {
        "horizon": "auto" if config.doubling else config.horizon,
        "delta": config.delta,
        "positions": config.positions,
        "freeze_decided": config.freeze_decided,
    }


def describe_ranker(config: "RankerConfig") -> str:
    """The ranker's settings in force, in words."""
    if config.delta is not None:
        level = f"delta {config.delta:g}"
    elif config.doubling:
        level = f"horizon auto (from {config.first_horizon:,}, doubling), delta = horizon ** -4"
    else:
        level = f"horizon {config.horizon:,}, delta = horizon ** -4"
    shown = "all positions" if config.positions is None else f"{config.positions} positions"
    frozen = ", decided pairs frozen" if config.freeze_decided else ""
    return f"{level}, {shown}{frozen}"


def refuse_nonempty(out: Path, overwrite: bool) -> None:
    """Refuse a path that is no folder, and a non-empty one without `--overwrite`.

    Looks only; removing the old run is for whoever writes the new one.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is not a folder: name another")
    if not overwrite and out.is_dir() and any(out.iterdir()):
        raise UsageError(f"--out {out} is not empty: name another folder or add --overwrite")


def refuse_existing_file(out: Path, overwrite: bool) -> None:
    """Refuse a file that exists, without `--overwrite`, and one whose folder does not exist."""
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder: name a file")
    if out.exists() and not overwrite:
        raise UsageError(f"--out {out} exists: name another file or add --overwrite")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: the folder {out.parent} does not exist, create it")
