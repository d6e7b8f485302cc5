"""The units of benchmark results: how tools spell them, what they mean, and the base unit of each."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pint

DEFINITIONS = """
nano- = 1e-9 = n-
micro- = 1e-6 = u- = µ- = μ-
milli- = 1e-3 = m-
kilo- = 1e3 = k- = K-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
peta- = 1e15 = P-
kibi- = 2**10 = Ki-
mebi- = 2**20 = Mi-
gibi- = 2**30 = Gi-
tebi- = 2**40 = Ti-
pebi- = 2**50 = Pi-
second = [time] = s = sec
minute = 60 * second = min
hour = 3600 * second = h = hr
day = 86400 * second = d
byte = [information] = B = Byte
bit = 0.125 * byte = b
percent = [share] = pct
hertz = 1 / second = Hz = iops = IOPS = tps = TPS = qps = rps = flops = FLOPS
byte_rate = byte / second = Bps
bit_rate = bit / second = bps
"""
COUNTED = """
operation op io event request req transaction query queries call message msg packet pkt loop iteration iter job cycle
switch switches fault error retry retries hit miss misses item count number scalar ratio bool boolean thread task
process processes connection sample page line key record row frame interrupt fork exec create file allocation bogo unit
cpu core score
"""  # plain numbers: one of each is 1
PLAIN = frozenset({"", "1", "#", "-", "none", "n/a", "x"})  # how a plain number may be marked
MULTIPLES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "thousand": 1e3, "million": 1e6, "billion": 1e9}  # as words
SIGNS = {"%": "percent"}


def definitions() -> list[str]:
    """The lines that pint reads."""
    return [*DEFINITIONS.split("\n"), *(f"{word} = 1" for word in COUNTED.split())]


PER = re.compile(r"\s*/\s*|\s+per\s+|_per_|_(?=s$|secs?$|seconds?$)", re.IGNORECASE)  # MiB_s: file names lack the slash
WORD = re.compile(r"[^\W\d_]+")
TINY_INFORMATION = re.compile(r"(m|u|n|U|N|µ|μ|milli|micro|nano)(b|B|bit|byte|Byte)s?")  # a thousandth of a bit is none

# Powers of 1,024 under a decimal name: where the tool stands in the name of the benchmark. Logs that whorl itself reads
# come with KiB, MiB, GiB; these are for rows that others parsed.
BINARY_BY_TOOL: dict[str, dict[str, str]] = {
    "iperf3": {f"{prefix}Byte{s}": f"{prefix}iB" for prefix in "KMGT" for s in ("", "s")},
    "sysbench": {f"{prefix}{b}": f"{prefix}iB" for prefix in "KMGT" for b in ("b", "B")},  # 0.4 and 0.5
    "ioping": {f"{prefix}b": f"{prefix.upper()}iB" for prefix in "kmgt"},  # before 0.9
    "fio": {"KB": "KiB"},  # before 2.17; kB is a later one's, and decimal
}


@dataclass(frozen=True)
class Spelled:
    """Words above the line and below it; both empty for a plain number."""

    above: tuple[str, ...]
    below: tuple[str, ...]


def spelled(unit: str, benchmark: str = "") -> Spelled | None:
    """The words of a unit, in the meaning that the benchmark's tool gives them; None if it is no unit at all."""
    text = SIGNS.get(unit.strip(), unit.strip())
    if text.lower() in PLAIN:
        return Spelled((), ())
    sides = PER.split(text if text[0] != "/" else f"1{text}")
    if len(sides) > 2 or (len(sides) == 2 and not sides[1]):
        return None
    above, below = (_words(side, benchmark) for side in [*sides, ""][:2])
    return None if above is None or below is None else Spelled(above, below)


def _words(side: str, benchmark: str) -> tuple[str, ...] | None:
    found = []
    for word in side.replace("%", " percent ").split():
        if word == "1":
            continue
        if not WORD.fullmatch(word):
            return None
        meant = _meant(word, benchmark)
        if TINY_INFORMATION.fullmatch(meant):
            return None
        found.append(meant)
    return tuple(found)


def _meant(word: str, benchmark: str) -> str:
    for tool, binary in BINARY_BY_TOOL.items():
        if tool in benchmark and word in binary:
            return binary[word]
    return word


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
