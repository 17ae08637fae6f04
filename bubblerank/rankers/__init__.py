"""The rankers by name: a readable module each, and a compiled one that equals it."""

import importlib
from typing import cast

from bubblerank.errors import UsageError
from bubblerank.rankers.policy import Policy

_MODULES = {
    "bubblerank": "bubble",
    "cascade-klucb": "cascade_klucb",
    "batchrank": "batchrank",
    "toprank": "toprank",
    "baseline": "baseline",
}
RANKER_NAMES = tuple(_MODULES)


def module_name(ranker: str) -> str:
    """The module of a ranker, the same in ``bubblerank.rankers`` and ``bubblerank.kernels``."""
    if ranker not in _MODULES:
        known = ", ".join(RANKER_NAMES)
        raise UsageError(f"ranker must be one of {known}, got {ranker!r}")
    return _MODULES[ranker]


def policy(ranker: str) -> Policy:
    """The readable functions of a ranker."""
    return cast(Policy, importlib.import_module(f"bubblerank.rankers.{module_name(ranker)}"))
