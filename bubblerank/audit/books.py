"""Books: what `run.json` tells must add up, and agree with the files beside it."""

from collections.abc import Mapping
from typing import Any

import schemas
from bubblerank.audit.finding import Outcome
from bubblerank.books import Books
from bubblerank.errors import RunFailed, UsageError
from bubblerank.run_folder import MANIFEST, PARTS, RunFolder

CHECK = "books"
_AUDITED = ("displays", "statistics", "metrics", "rejects")


def check_books(folder: RunFolder) -> Outcome:
    """All facts that a run folder tells twice."""
    outcome = Outcome(CHECK)
    if not folder.is_complete:
        outcome.checked = 1
        outcome.fail(
            None,
            f"{folder.path / MANIFEST}, written when a run has ended well",
            "half a run folder: no such file",
        )
        return outcome
    try:
        manifest = folder.read_manifest()
        counters = manifest["counters"]
        books = Books.from_counters(counters)
        rows = folder.rows()
    except (UsageError, ValueError, TypeError, KeyError, OSError) as error:
        outcome.checked = 1
        outcome.fail(None, f"a manifest and files that can be read in {folder.path}", str(error))
        return outcome
    outcome.checked += 1
    try:
        books.balance()
    except RunFailed as error:
        outcome.fail(None, "read = ranked + rejected + duplicate + off_policy + ...", str(error))
    for part in _AUDITED:
        told = manifest.get("rows", {}).get(part, 0)
        _compare(outcome, f"{told} rows of {part}, as {MANIFEST} tells", told, rows.get(part, 0))
    if "displays" in rows:
        expected = f"{books.ranked} displays, one for each session that was ranked"
        _compare(outcome, expected, books.ranked, rows["displays"])
    rejected = rows.get("rejects", 0)
    _compare(outcome, f"{books.rejected} rejects", books.rejected, rejected)
    _check_schemas(outcome, manifest)
    return outcome


def _compare(outcome: Outcome, expected: str, told: int, found: int) -> None:
    outcome.checked += 1
    if told != found:
        outcome.fail(None, expected, f"the files hold {found}")


def _check_schemas(outcome: Outcome, manifest: Mapping[str, Any]) -> None:
    for kind, told in manifest.get("schemas", {}).items():
        outcome.checked += 1
        if kind in PARTS.values() and told != schemas.fingerprint(kind):
            outcome.fail(
                None,
                f"{kind} rows of schema {schemas.fingerprint(kind)[:16]}",
                f"of schema {str(told)[:16]}: another version wrote them",
            )
