"""The fields of one Spark event, each in the type that it has to have; what is wrong with one is a ValueError."""

import re
from collections.abc import Mapping
from typing import Any

Event = Mapping[str, Any]
SHOWN_CHARS = 60
COUNT = re.compile(r"[0-9]{1,15}")  # longer ones are no count of anything


def short(name: str) -> str:
    """The name of an event without what all of them begin with."""
    return name.rpartition(".")[2].removeprefix("SparkListener")


def part(event: Event, key: str) -> Event:
    """An object that has to be there. Raises ValueError if it is missing or no object."""
    if event.get(key) is None:
        raise ValueError(f"{short(str(event.get('Event', 'event')))} lacks '{key}'")
    return optional(event, key)


def optional(event: Event, key: str) -> Event:
    """An object, empty if it is missing. Raises ValueError if it is no object."""
    found = event.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"{key} '{str(found)[:SHOWN_CHARS]}' is not an object")
    return found


def number(event: Event, key: str, default: float | None = None) -> float:
    """A number from 0. Raises ValueError for any other, and for a missing one without a default."""
    value = event.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is not a number")
    if not 0 <= value < 1e18:
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is negative or too large; expected 0 or more")
    return float(value)


def optional_whole(event: Event, key: str) -> int | None:
    """A whole number of any sign, None if it is missing. Raises ValueError for anything else."""
    value = event.get(key)
    if value is not None and type(value) is not int:
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is not a whole number")
    return value


def text(event: Event, key: str) -> str:
    """A text that is not empty. Raises ValueError for anything else."""
    found = optional_text(event, key)
    if not found:
        raise ValueError(f"{key} '{str(event.get(key))[:SHOWN_CHARS]}' is not a text")
    return found


def optional_text(event: Event, key: str) -> str | None:
    """A text, None if it is missing. Raises ValueError if it is none, or holds a surrogate without its partner."""
    value = event.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is not a text")
    if value and any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError(f"{key} {value[:SHOWN_CHARS]!a} holds half a character; expected whole ones")
    return value


def count(given: str | None) -> float | None:
    """A count as Spark's properties write it; None for what is no count."""
    match = COUNT.fullmatch(given.strip()) if given else None
    return float(match[0]) if match else None
