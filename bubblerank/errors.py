"""The two ways in which a request can end badly, and how a mistyped name is answered."""

import difflib
from collections.abc import Iterable


class UsageError(ValueError):
    """The request cannot be served as asked: a bad option, a bad file, a bad name (exit code 2)."""


class RunFailed(Exception):
    """The request was fine, the work failed (exit code 1)."""


def raise_all(complaints: Iterable[str]) -> None:
    """Raise one `UsageError` that tells every complaint, a line each; do nothing without any."""
    lines = list(complaints)
    if lines:
        raise UsageError("\n".join(lines))


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that `name` is no known `kind`, with the nearest known one, or all of them.

    >>> unknown_name("ranker", "toprnk", ["baseline", "toprank"])
    "unknown ranker 'toprnk': did you mean 'toprank'? Known: baseline, toprank"
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown {kind} {name!r}: {hint}Known: {', '.join(names) or 'none'}"
