import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config):
    """Drop compiled kernels older than any kernel's source.

    Numba looks only at the file of a cached function, not at those of the functions it calls.
    """
    kernels = Path(__file__).parent.parent / "bubblerank" / "kernels"
    newest = max(source.stat().st_mtime for source in kernels.glob("*.py"))
    for cached in kernels.glob("__pycache__/*.nb[ic]"):
        if cached.stat().st_mtime < newest:
            cached.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def no_terminal_width(monkeypatch):
    """Tables are as wide as they need, whatever the terminal or the test runner says."""
    monkeypatch.delenv("COLUMNS", raising=False)
