"""How a unit was written, taken apart: words above and below the line, and the tools that write MB and mean MiB."""

import re
from dataclasses import dataclass

from tasks.nodes.preprocess.unit_definitions import PLAIN, SIGNS

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
