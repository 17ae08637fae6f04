"""What an audit is given: run folders, folders and globs of displays; and what they tell."""

import glob
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bubblerank.audit.settings import REPLAY, AuditSettings
from bubblerank.config import RankerConfig
from bubblerank.errors import UsageError, raise_all
from bubblerank.problems import Problem
from bubblerank.run_folder import RunFolder

_TOLD = ("feedback", "steps", "horizon", "delta", "positions", "freeze_decided", "confidence")
_HASHED_BYTES = 1 << 20


@dataclass(frozen=True)
class Inputs:
    """The files to audit. runs: the run folders among them; manifest: what they tell alike."""

    displays: tuple[Path, ...]
    runs: tuple[RunFolder, ...] = ()
    statistics: tuple[Path, ...] = ()
    manifest: Mapping[str, Any] | None = None


def find_inputs(given: Sequence[str]) -> Inputs:
    """Open run folders and globs; UsageError, with every complaint, for what holds no displays."""
    displays: dict[Path, None] = {}
    runs, complaints = [], []
    for name in given:
        path = Path(name)
        if path.is_dir() and ((path / "displays").is_dir() or RunFolder(path).is_complete):
            run = RunFolder(path)
            runs.append(run)
            found = run.files("displays")
            remedy = "simulate with --displays, or name another run"
        else:
            found = sorted(path.glob("*.parquet")) if path.is_dir() else _matches(name)
            remedy = "check the path, and quote the glob"
        if not found:
            complaints.append(f"{name} holds no displays: {remedy}")
        displays.update(dict.fromkeys(found))
    raise_all(complaints)
    told = [run.read_manifest() for run in runs if run.is_complete]
    return Inputs(
        tuple(displays),
        tuple(runs),
        tuple(file for run in runs for file in run.files("statistics")),
        _agreed([str(run.path) for run in runs if run.is_complete], told),
    )


def _matches(pattern: str) -> list[Path]:
    return [
        Path(name) for name in sorted(glob.glob(pattern, recursive=True)) if Path(name).is_file()
    ]


def _agreed(
    paths: Sequence[str], manifests: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The manifest, where all runs were made alike."""
    if not manifests:
        return None
    for path, manifest in zip(paths, manifests, strict=True):
        if _relevant(manifest) != _relevant(manifests[0]):
            raise UsageError(
                f"{paths[0]} and {path} were made with different settings: audit them one by one"
            )
    return manifests[0]


def _relevant(manifest: Mapping[str, Any]) -> dict[str, Any]:
    settings = manifest.get("settings", {})
    found = {name: settings.get(name) for name in _TOLD}
    return {**found, "seed": manifest.get("seed"), "command": manifest.get("command")}


def settings_of(manifest: Mapping[str, Any] | None, checks: Sequence[str]) -> AuditSettings:
    """The audit's settings that a manifest tells; nearly none without one."""
    settings = AuditSettings(tuple(checks))
    if manifest is None:
        return settings
    told = _relevant(manifest)
    settings = replace(
        settings,
        positions=told["positions"],
        seed=told["seed"],
        command=told["command"],
        feedback=told["feedback"],
        steps=told["steps"],
    )
    if told["confidence"] not in (None, "paper"):
        return settings
    if told["horizon"] is None and told["delta"] is None:
        return settings
    try:
        config = RankerConfig(
            positions=told["positions"],
            horizon=None if told["horizon"] == "auto" else told["horizon"],
            delta=told["delta"],
            freeze_decided=bool(told["freeze_decided"]),
        )
    except (TypeError, ValueError) as error:
        raise UsageError(f"run.json tells settings that cannot be: {error}") from error
    return replace(settings, config=config)


def same_users(manifest: Mapping[str, Any] | None, problems: Path | None, fitted: bool) -> bool:
    """Whether a simulation drew its clicks from this very file of problems.

    Told by the content of the file that run.json names; where that has gone, problems that are
    called fitted are taken for those of a replay against a model, and others for a simulation's.
    """
    if manifest is None or problems is None:
        return False
    told = manifest.get("settings", {}).get("problems")
    if told is not None and Path(told).is_file():
        return bool(fingerprint(Path(told))["sha256"] == fingerprint(problems)["sha256"])
    return fitted is (manifest.get("command") == REPLAY)


def problems_by_query(
    problems: Sequence[Problem], click_model: str | None = None
) -> dict[str, Problem]:
    """One problem for each query; UsageError where a query has several click models."""
    found: dict[str, Problem] = {}
    for problem in problems:
        if click_model not in (None, problem.click_model):
            continue
        if problem.query in found:
            raise UsageError(
                f"query {problem.query!r} has the click models {found[problem.query].click_model} "
                f"and {problem.click_model}, and displays do not tell theirs: give --click-model"
            )
        found[problem.query] = problem
    if not found:
        raise UsageError(f"no problem has the click model {click_model}")
    return found


def fingerprint(path: Path) -> dict[str, Any]:
    """A file's path, size and SHA-256, so that a verdict can be repeated on the same bytes."""
    digest = hashlib.sha256()
    size = 0
    with open(path, "rb") as file:
        while piece := file.read(_HASHED_BYTES):
            digest.update(piece)
            size += len(piece)
    return {"path": str(path), "bytes": size, "sha256": digest.hexdigest()}
