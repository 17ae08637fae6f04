"""Checks of single values that come from outside.

Each gives the value as it is kept, or tells field, value and bound in a `ValueError`.
"""

import numbers
from typing import Any

from bubblerank.click_models import probabilities
from bubblerank.config import MAX_ITEMS


def short(value: object, length: int = 60) -> str:
    """`repr(value)`, cut for a message."""
    shown = repr(value)
    return shown if len(shown) <= length else f"{shown[: length - 3]}..."


def non_empty_text(name: str, value: object) -> str:
    """A non-empty string that UTF-8, and so Avro and Parquet, can hold."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, got {short(value)}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{name} must be text that UTF-8 can hold, got {short(value)}: remove lone surrogates"
        ) from None
    return value


def distinct_items(name: str, value: object) -> tuple[str, ...]:
    """A list of 1 to 1,000 distinct non-empty items."""
    items = _sequence(name, value)
    if not 1 <= len(items) <= MAX_ITEMS:
        raise ValueError(f"{name} must hold 1 to {MAX_ITEMS} items, got {len(items)}")
    places: dict[str, int] = {}
    for place, item in enumerate(items):
        item = non_empty_text(f"{name}[{place}]", item)
        if item in places:
            raise ValueError(
                f"{name}[{place}] is {short(item)}, which {name}[{places[item]}] is already: "
                "items must be distinct"
            )
        places[item] = place
    return tuple(places)


def probability_list(name: str, value: object) -> tuple[float, ...]:
    """A list of at least one probability."""
    values = _sequence(name, value)
    for place, number in enumerate(values):
        if isinstance(number, int) and number not in (0, 1):
            raise ValueError(
                f"{name}[{place}] must lie in [0, 1], got {short(number)}: it is a probability"
            )
        if isinstance(number, bool) or not isinstance(number, numbers.Real):
            raise ValueError(f"{name}[{place}] must be a number, got {short(number)}")
    return probabilities(name, values)


def _sequence(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes, dict, set, frozenset)) or not hasattr(value, "__iter__"):
        raise ValueError(f"{name} must be a list, got {short(value)}")
    return tuple(value)
