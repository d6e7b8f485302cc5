"""Values as the command line shows them. Durations, numbers and shares are those of tasks/quantities.py."""

import shlex
from typing import Any

from tasks import quantities

MISSING = quantities.MISSING
SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
STEP = 1024
WHOLE_FROM = 100  # 512 MiB, but 5.1 GiB


def is_missing(value: Any) -> bool:
    """None, NaN and NaT."""
    return value is None or bool(value != value)


def text(value: Any) -> str:
    """Any value as one line; a dash for a missing one."""
    if isinstance(value, list | tuple):
        return clean(", ".join(str(part) for part in value))
    if is_missing(value):
        return MISSING
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else clean(str(value))


def count(value: Any) -> str:
    """A whole number with thousands separators."""
    return MISSING if is_missing(value) else f"{int(value):,}"


def counted(n: int, what: str) -> str:
    """A number of things: 1 file, 2 files."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def runs_or_windows(n: Any, n_windows: Any) -> str:
    """What so many traces are, n_windows of them cut from longer runs: 12 runs, 84 windows, 90 runs and windows."""
    n, n_windows = int(n or 0), int(n_windows or 0)
    return counted(n, "run" if not n_windows else "window" if n_windows == n else "runs and window")


def figure(value: Any) -> str:
    """A number of a table that may hold numbers and texts."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return quantities.number(value) if is_number else text(value)


def setting(value: Any) -> str:
    """The value of a setting or parameter, so that one that is empty can be seen."""
    if isinstance(value, dict | list | tuple) and not value:
        return "none"
    return text(value) if value != "" else "''"


def moment(value: Any) -> str:
    """A time to the second; the column's title says that it is UTC."""
    return MISSING if is_missing(value) else f"{value:%Y-%m-%d %H:%M:%S}"


def size(value: Any) -> str:
    """Bytes in the unit that keeps the number short."""
    if is_missing(value):
        return MISSING
    amount, step = float(value), 0
    while abs(amount) >= STEP and step < len(SIZES) - 1:
        amount, step = amount / STEP, step + 1
    return f"{amount:,.0f} {SIZES[step]}" if step == 0 or amount >= WHOLE_FROM else f"{amount:,.1f} {SIZES[step]}"


def clean(line: str) -> str:
    """Without control characters: the name of a job must not move the cursor of a terminal or break a line."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else " " if char.isspace() else UNPRINTABLE for char in line)


def as_command(*words: object) -> str:
    """The words as a command that can be pasted into a shell."""
    return shlex.join(map(str, words))


def shorten(key: str, width: int) -> str:
    """The key with its middle left out: the two ends of a job's key tell it from its neighbours."""
    if len(key) <= width:
        return key
    head = width // 2
    return f"{key[:head]}…{key[len(key) - (width - head - 1) :]}"
