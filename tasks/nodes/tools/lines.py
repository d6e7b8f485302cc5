"""The lines of a log with their numbers, and the parts of a text in which several logs stand."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tasks.nodes.measured import Fault
from tasks.reading import RAW_CHARS

NO_TEXT = ("\0", "\ufffd")  # NUL, and what stands for bytes that are not UTF-8
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Line:
    """One line. place: its number, from 1; is_cut: the text ends inside it, or at least without a line break."""

    place: int
    text: str
    is_cut: bool = False


def lines_of(text: str) -> list[Line]:
    """The lines with something in them. Carriage returns end a line too (progress is written over itself)."""
    rows = text.removeprefix("\ufeff").split("\n")
    found = []
    for place, row in enumerate(rows, 1):
        pieces = [piece for piece in ESCAPES.sub("", row).split("\r") if piece.strip()]
        is_last = place == len(rows)
        found += [Line(place, piece, is_last and at == len(pieces)) for at, piece in enumerate(pieces, 1)]
    return found


def unreadable(text: str, faults: Sequence[Fault]) -> list[Fault]:
    """A fault for each line with bytes that are no text, which no other fault is about: its value may be lost."""
    known = {fault.place for fault in faults}
    rows = enumerate(text.split("\n"), 1) if any(mark in text for mark in NO_TEXT) else ()
    return [
        Fault(
            place,
            "bytes that are no text in the line (was the disk full?); what it says may be missing",
            row[:RAW_CHARS],
        )
        for place, row in rows
        if place not in known and any(mark in row for mark in NO_TEXT)
    ]


def parts_of(lines: Sequence[Line], *starts: re.Pattern[str]) -> list[list[Line]]:
    """The logs in a text: each begins at a line that fits the first of the patterns that any line fits.

    What stands before the first start belongs to it. Without any start all lines are one part."""
    for start in starts:
        at = [number for number, line in enumerate(lines) if start.search(line.text)]
        if at:
            edges = [0, *at[1:], len(lines)]
            return [list(lines[left:right]) for left, right in pairwise(edges)]
    return [list(lines)]
