"""Running an audit: where it writes, the pipeline, and `audit.json`, which ends it."""

import argparse
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubblerank.errors import UsageError
from commands.arguments import refuse_nonempty
from commands.execution import interruptible, telling_of_compilation
from commands.progress import Progress

if TYPE_CHECKING:
    from bubblerank.audit.inputs import Inputs
    from bubblerank.audit.settings import AuditSettings
    from bubblerank.audit.totals import Totals
    from bubblerank.problems import Problem

SUMMARY = "audit.json"


@dataclass
class AuditRun:
    """One audit. ``books`` holds what was found about whole runs."""

    args: argparse.Namespace
    inputs: "Inputs"
    settings: "AuditSettings"
    problems: "dict[str, Problem]"
    books: "Totals"

    @property
    def out(self) -> Path | None:
        """The folder to write into: --out, else the run; None for several or none."""
        if self.args.out is not None:
            return Path(self.args.out)
        only_run = len(self.args.input) == len(self.inputs.runs) == 1
        return self.inputs.runs[0].path if only_run else None

    def run(self) -> dict[str, Any]:
        """Run the pipeline and give what `audit.json` holds."""
        if self.args.out is not None:
            refuse_nonempty(self.args.out, self.args.overwrite)
        out = self.out
        if out is not None:
            _clear(out)
        with tempfile.TemporaryDirectory(prefix="bubblerank-audit-") as folder:
            totals = Path(folder) / "totals.json"
            self._pipeline(totals, out)
            record = self._record(json.loads(totals.read_text("utf-8")))
        if out is not None:
            _write(out, record)
        return record

    def _pipeline(self, totals: Path, out: Path | None) -> None:
        from pipelines.audit import AuditPlan, build
        from pipelines.engine import choose_engine, run_pipeline

        told = [finding for check in self.books.checks.values() for finding in check.first]
        resume = (self.inputs.manifest or {}).get("settings", {}).get("resume")
        plan = AuditPlan(
            settings=self.settings,
            displays=tuple(map(str, self.inputs.displays)),
            totals=str(totals),
            statistics=tuple(map(str, self.inputs.statistics)),
            resumed=_earlier_statistics(resume) if resume else (),
            problems=self.problems,
            findings=None if out is None else str(out / "findings"),
            told=tuple(told),
        )
        options, _ = choose_engine(self.args.beam_flags)
        quiet = self.args.quiet
        try:
            with interruptible(), telling_of_compilation(quiet), _watching(quiet):
                run_pipeline(lambda pipeline: build(pipeline, plan), options)
        finally:
            if out is not None:
                shutil.rmtree(out / ".writing", ignore_errors=True)

    def _record(self, found: dict[str, Any]) -> dict[str, Any]:
        import bubblerank
        from bubblerank.audit.inputs import fingerprint

        wanted = self.settings.checks
        books = {check["check"]: check for check in self.books.verdicts(["books"], 100)}
        if not self.inputs.runs:
            books["books"]["missing"] = {"run.json: name a run folder": 1}
        checks = [books["books"] if c["check"] == "books" else c for c in found["checks"]]
        checks = [check for check in checks if check["check"] in wanted]
        against = None
        if self.problems:
            against = f"against the {'fitted' if self.settings.fitted else 'given'} model"
        files = [*self.inputs.displays, *self.inputs.statistics]
        files += [run.path / "run.json" for run in self.inputs.runs if run.is_complete]
        files += [self.args.problems] if self.args.problems is not None else []
        statuses = {check["status"] for check in checks}
        return {
            "verdict": next(s for s in ("FAIL", "PASS", "NOT CHECKED") if s in statuses),
            "against": against,
            "displays": sum(ranker["displays"] for ranker in found["rankers"]),
            "checks": checks,
            "rankers": found["rankers"],
            "settings": asdict(self.settings),
            "inputs": [fingerprint(path) for path in files],
            "version": bubblerank.__version__,
        }


def _earlier_statistics(resume: str) -> tuple[str, ...]:
    from pipelines.base_lists import statistics_files

    try:
        return tuple(statistics_files(resume))
    except UsageError as error:
        raise UsageError(
            f"the run went on from {resume}, whose statistics are not there: put them back, "
            "from where the run was made"
        ) from error


def _clear(out: Path) -> None:
    """Remove an earlier audit, and nothing else."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / SUMMARY).unlink(missing_ok=True)
        for file in (out / "findings").glob("*.parquet"):
            file.unlink()
    except OSError as error:
        raise UsageError(f"{out} cannot be written to ({error}): give another --out") from error


def _write(out: Path, record: dict[str, Any]) -> None:
    from bubblerank.atomic_files import replacing

    with replacing(out / SUMMARY) as temporary:
        text = json.dumps(record, indent=2, ensure_ascii=False, default=str)
        temporary.write_text(text + "\n", "utf-8")


@contextmanager
def _watching(quiet: bool) -> Iterator[None]:
    """Report on stderr how many displays were read, then how many were checked."""
    from pipelines import pulse

    pulse.reset()
    ended = threading.Event()
    with (
        Progress("displays read", quiet=quiet) as reading,
        Progress("displays checked", quiet=quiet) as checking,
    ):

        def look() -> None:
            while not ended.wait(0.5):
                if pulse.ranked():
                    checking.update(pulse.ranked())
                else:
                    reading.update(pulse.read())

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
