"""A run folder: where its parts are, when it may be overwritten, and the manifest that ends it."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bubblerank.atomic_files import replacing
from bubblerank.errors import RunFailed, UsageError

MANIFEST = "run.json"
REPORT = "report.html"
AUDIT = "audit.json"
TEMPORARY = ".writing"
PARTS = {
    "displays": "display",
    "statistics": "statistic",
    "metrics": "metric",
    "rejects": "reject",
    "findings": "finding",
}
"""Each part's folder, and the kind of its rows."""


class RunFolder:
    """The files of one run. Complete if and only if `run.json` is there: it is written last."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    def prepare(cls, out: str | os.PathLike[str], overwrite: bool = False) -> "RunFolder":
        """An empty folder for a new run, made where needed.

        A folder with anything in it is refused without `overwrite`. With it, the parts of an
        earlier run are removed, and nothing else ever is: a folder that holds something else is
        refused, before anything is touched.
        """
        folder = cls(out)
        if folder.path.exists() and not folder.path.is_dir():
            raise UsageError(f"--out {out} is not a folder: name another")
        entries = sorted(folder.path.iterdir()) if folder.path.is_dir() else []
        if entries and not overwrite:
            raise UsageError(f"--out {out} is not empty: name another folder or add --overwrite")
        strange = [entry for entry in entries if not _is_part_of_a_run(entry)]
        if strange:
            raise UsageError(
                f"--out {out} holds {strange[0].name!r}, which is no part of a run: "
                "--overwrite replaces only runs; name another folder"
            )
        for entry in sorted(entries, key=lambda entry: entry.name != MANIFEST):
            _remove(entry)
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--out {out} cannot be made: {error.strerror}") from error
        return folder

    def part(self, name: str) -> Path:
        """The folder of a part, whether or not it exists."""
        if name not in PARTS:
            raise ValueError(f"a part must be one of {', '.join(PARTS)}, got {name!r}")
        return self.path / name

    def files(self, name: str) -> list[Path]:
        """The Parquet files of a part, sorted by name."""
        return sorted(self.part(name).glob("*.parquet"))

    def rows(self) -> dict[str, int]:
        """The rows of each part that exists, by its files' footers."""
        import pyarrow.parquet as pq

        return {
            name: sum(pq.read_metadata(file).num_rows for file in self.files(name))
            for name in PARTS
            if self.part(name).is_dir()
        }

    @contextmanager
    def filling(self) -> Iterator["RunFolder"]:
        """Whatever happens inside, leave no temporary file behind; on failure no half run."""
        try:
            yield self
        except BaseException:
            for name in (MANIFEST, *PARTS):
                _remove(self.path / name)
            raise
        finally:
            _remove(self.path / TEMPORARY)

    @property
    def is_complete(self) -> bool:
        """Whether the run ended well."""
        return (self.path / MANIFEST).is_file()

    def write_manifest(
        self,
        *,
        command: str,
        settings: Mapping[str, Any],
        seed: int | None,
        runner: str,
        engine: str,
        counters: Mapping[str, int],
        seconds: float,
        **more: Any,
    ) -> dict[str, Any]:
        """Write `run.json`, atomically, as the last act of a run; return what it holds.

        Rows are counted in the files; where the counters say how many were to be written and the
        files hold another number, the run fails instead.
        """
        import bubblerank
        import schemas

        _remove(self.path / TEMPORARY)
        rows = self.rows()
        for name, kind in PARTS.items():
            expected = counters.get(f"rows_{kind}", rows.get(name, 0))
            if expected != rows.get(name, 0):
                raise RunFailed(
                    f"{expected} {kind} rows were to be written and {self.part(name)} holds "
                    f"{rows.get(name, 0)}: the run is void; run it again"
                )
        manifest = {
            "command": command,
            "version": bubblerank.__version__,
            "settings": dict(settings),
            "seed": seed,
            "runner": runner,
            "engine": engine,
            "schemas": {kind: schemas.fingerprint(kind) for kind in PARTS.values()},
            "counters": dict(sorted(counters.items())),
            "rows": rows,
            "seconds": round(seconds, 3),
            "per_second": _per_second({**counters, **rows}, seconds),
            **more,
        }
        with replacing(self.path / MANIFEST) as temporary:
            text = json.dumps(manifest, indent=2, ensure_ascii=False, default=str)
            temporary.write_text(text + "\n", "utf-8")
        return manifest

    def read_manifest(self) -> dict[str, Any]:
        """What `run.json` holds; UsageError where there is no complete run."""
        if not self.path.is_dir():
            raise UsageError(f"no run folder {self.path}: name the --out of a run")
        if not self.is_complete:
            raise UsageError(
                f"{self.path} has no {MANIFEST}: it is no run, or one that did not end well"
            )
        try:
            manifest = json.loads((self.path / MANIFEST).read_text("utf-8"))
        except ValueError as error:
            raise UsageError(f"{self.path / MANIFEST} is not JSON ({error})") from error
        if not isinstance(manifest, dict):
            raise UsageError(f"{self.path / MANIFEST} holds no object: it is no manifest")
        return manifest


def _per_second(counts: Mapping[str, int], seconds: float) -> dict[str, float]:
    wanted = ("read", "ranked", *PARTS)
    if seconds <= 0:
        return {}
    return {name: round(counts[name] / seconds, 1) for name in wanted if counts.get(name)}


def _is_part_of_a_run(entry: Path) -> bool:
    if entry.is_symlink():
        return False
    if entry.name in (MANIFEST, REPORT, AUDIT):
        return entry.is_file()
    if entry.name == TEMPORARY:
        return entry.is_dir()
    return (
        entry.name in PARTS
        and entry.is_dir()
        and all(file.suffix == ".parquet" and file.is_file() for file in entry.iterdir())
    )


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)
