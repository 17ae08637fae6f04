"""How far the work in this process has come: for a progress bar, never for a result.

Beam's counters tell nothing before a local run ends, so readers and rankers also add here.
"""

_done = {"read": 0, "ranked": 0}


def reset() -> None:
    """Start again from nothing."""
    _done.update(read=0, ranked=0)


def add_read(sessions: int) -> None:
    """Count sessions that have been read from a log."""
    _done["read"] += sessions


def add_ranked(sessions: int) -> None:
    """Count sessions that have been ranked."""
    _done["ranked"] += sessions


def read() -> int:
    """The sessions read so far in this process."""
    return _done["read"]


def ranked() -> int:
    """The sessions ranked so far in this process."""
    return _done["ranked"]
