"""How far the ranker in this process has come: for a progress bar, never for a result.

Beam's counters tell nothing before a local run ends, so the ranker also adds here.
"""

_ranked = [0]


def reset() -> None:
    """Start again from nothing."""
    _ranked[0] = 0


def add(sessions: int) -> None:
    """Count sessions that have been ranked."""
    _ranked[0] += sessions


def ranked() -> int:
    """The sessions ranked so far in this process."""
    return _ranked[0]
