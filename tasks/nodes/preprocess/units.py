"""What one unit of a tool is in base units: seconds, bytes, their quotients, percent, plain numbers."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pint

from tasks.nodes.preprocess.spelling import spelled
from tasks.nodes.preprocess.unit_definitions import MULTIPLES, definitions

PLAIN_BASE = "1"
LONGEST_UNIT = 60  # of an unknown one, where it is shown


@dataclass(frozen=True)
class Conversion:
    """value · factor is in `base` (s, B, B/s, 1/s, s/B, %, 1, …).

    is_known: false for a unit that nobody defined; its base is itself, in quotes, so it meets nothing else."""

    factor: float
    base: str
    is_known: bool = True


@lru_cache(maxsize=4096)
def conversion_of(unit: str, benchmark: str = "") -> Conversion:
    """The conversion of a unit as a tool wrote it. benchmark: some tools write MB and mean MiB (see spelling)."""
    words = spelled(unit, benchmark)
    if words is not None:
        try:
            quantity = registry().Quantity(1.0, "dimensionless")
            for word in words.above:
                quantity = quantity * _one(word)
            for word in words.below:
                quantity = quantity / _one(word)
            base = quantity.to_root_units()
            return Conversion(float(base.magnitude), _label(base.units))
        except pint.UndefinedUnitError:
            pass
    return Conversion(1.0, f"'{unit.strip()[:LONGEST_UNIT]}'", is_known=False)


@lru_cache(maxsize=256)
def per_second(base: str) -> str:
    """The base unit of a total of this base unit, once it is divided by seconds: B becomes B/s, s becomes 1."""
    if base.startswith("'"):
        return f"{base}/s"
    known = registry()
    return _label((known.Quantity(1.0, base.replace("%", "percent")) / known.Quantity(1.0, "second")).units)


@lru_cache(maxsize=1)
def registry() -> Any:
    """pint with the units of unit_definitions and no others, made at first use."""
    made: Any = pint.UnitRegistry(None)
    made.load_definitions(definitions())
    return made


def _one(word: str) -> Any:
    """One of what the word says; Microseconds, Ns: as in lower case, where it is nothing as it is written."""
    if word in MULTIPLES:
        return registry().Quantity(MULTIPLES[word], "dimensionless")
    try:
        return registry().Quantity(1.0, registry().Unit(word))
    except pint.UndefinedUnitError:
        if len(word) > 1 and word.istitle():
            return registry().Quantity(1.0, registry().Unit(word.lower()))
        raise


def _label(units: Any) -> str:
    return f"{units:~C}".replace("pct", "%") or PLAIN_BASE
