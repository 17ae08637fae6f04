"""Safe online re-ranking from clicks: rankers, click models, metrics and problems.

Names load on first use, so that `import bubblerank` costs next to nothing.
"""

import importlib

__version__ = "0.1.0"

_HOMES = {
    "Baseline": "bubblerank.online",
    "BatchRank": "bubblerank.online",
    "BubbleRank": "bubblerank.online",
    "CascadeKLUCB": "bubblerank.online",
    "CascadeModel": "bubblerank.click_models",
    "DependentClickModel": "bubblerank.click_models",
    "PositionBasedModel": "bubblerank.click_models",
    "Problem": "bubblerank.problems",
    "RunFailed": "bubblerank.errors",
    "TopRank": "bubblerank.online",
    "UsageError": "bubblerank.errors",
    "read_problems": "bubblerank.problems",
    "simulate": "bubblerank.simulation",
    "write_problems": "bubblerank.problems",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
