"""Work in a process of its own: its CPU time and its peak memory, nobody else's."""

import multiprocessing
import os
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

SCALE = float(os.environ.get("BUBBLERANK_BENCH_SCALE", "1"))
"""Below 1, the large benchmarks take that share of their sessions and queries."""


def scaled(size: int, at_least: int) -> int:
    return max(at_least, round(size * SCALE))


def in_own_process(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What the work gives, and the peak memory of its process in GiB."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measured, work, arguments).result()


def _measured(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, float]:
    result = work(*arguments)
    return result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def verdict(met: bool) -> str:
    return "yes" if met else "NO"
