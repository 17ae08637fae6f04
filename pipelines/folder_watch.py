"""Which files of a folder are new and complete."""

import os
from collections.abc import Iterable

from apache_beam.io.filesystems import FileSystems

from bubblerank.errors import UsageError
from bubblerank.sessions.readers import format_of

_HIDDEN = (".", "_")
_TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".swp", "~")


class FolderWatch:
    """Looks into one folder, not below it, and names each file once.

    A file is complete when two looks in a row find it with the same size, above 0, and the same
    time of change. Names that begin with `.` or `_` or end as temporary ones do are ignored;
    so are names that tell no format of sessions, unless `log_format` says it for all.
    """

    def __init__(
        self, folder: str, log_format: str | None = None, taken: Iterable[str] = ()
    ) -> None:
        """Watch `folder`; files whose names are `taken` have been read before."""
        self._folder = folder.rstrip("/") or "/"
        self._log_format = log_format
        self._taken = set(taken)
        self._marks: dict[str, tuple[int, float]] = {}
        self.stirs = False
        """Whether the last look found a file that is new or has changed."""

    def has_taken(self, names: Iterable[str]) -> bool:
        """Whether exactly these files have been named so far."""
        return self._taken == set(names)

    def look(self) -> list[str]:
        """The paths of files that have become complete since the look before, sorted."""
        marks = self._find()
        self.stirs = any(self._marks.get(path) != mark for path, mark in marks.items())
        complete = [path for path, mark in marks.items() if self._marks.get(path) == mark]
        complete = [path for path in complete if marks[path][0] > 0]
        self._taken.update(os.path.basename(path) for path in complete)
        self._marks = {path: mark for path, mark in marks.items() if path not in complete}
        return sorted(complete)

    def _find(self) -> dict[str, tuple[int, float]]:
        (matched,) = FileSystems.match([FileSystems.join(self._folder, "*")])
        return {
            found.path: (found.size_in_bytes, found.last_updated_in_seconds)
            for found in matched.metadata_list
            if self._is_wanted(found.path)
        }

    def _is_wanted(self, path: str) -> bool:
        name = os.path.basename(path)
        if not name or name in self._taken or name.startswith(_HIDDEN):
            return False
        if name.lower().endswith(_TEMPORARY) or os.path.isdir(path):
            return False
        try:
            format_of(path, self._log_format)
        except UsageError:
            return False
        return True
