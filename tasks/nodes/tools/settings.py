"""How a benchmark was called, as far as its log says: the settings that make two logs the same work or another.

Spelling differs by version (1K, 1KiB, 4096B-4096B): values are brought to bytes and seconds, so that the same settings
are the same text. A setting that a log does not print is not among them."""

import re
from collections.abc import Iterable

from tasks.nodes.tools.units import TIMES_S

DECIMAL, BINARY = 1_000, 1_024
SIZES_B = {
    "B": 1, "bytes": 1,
    "kB": DECIMAL, "KB": DECIMAL, "MB": DECIMAL**2, "GB": DECIMAL**3, "TB": DECIMAL**4,
    "KiB": BINARY, "MiB": BINARY**2, "GiB": BINARY**3, "TiB": BINARY**4,
}  # fmt: skip
ODD = re.compile(r"[^A-Za-z0-9_.,:%+/-]")
LONGEST = 80


def in_base(value: float, unit: str) -> float:
    """A size in bytes, a time in seconds, a speed in bytes a second, anything else as it is."""
    per_second = unit.removesuffix("/s").removesuffix("/sec")
    return value * SIZES_B.get(per_second, TIMES_S.get(unit, 1.0))


def spelled(value: float, unit: str = "") -> str:
    """The value in base units, without decimals where it has none."""
    base = in_base(value, unit)
    return str(int(base)) if base == int(base) else f"{base:.6g}"


def plain(text: str) -> str:
    """A text of a tool as a setting: one word, not too long."""
    return ODD.sub("_", text.strip())[:LONGEST]


def template_of(settings: Iterable[tuple[str, str]]) -> str:
    """The settings as one text, in the order of their names; empty for none."""
    return " ".join(f"{name}={value}" for name, value in sorted(settings))
