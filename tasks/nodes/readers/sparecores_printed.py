"""What an output of a benchmark gave: values, and lines that should have given some."""

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tasks.nodes.measured import Fault, Measured

RAW_SHOWN = 500


@dataclass
class Printed:
    """Values in the order of the output, and what could not be used, by line."""

    measured: list[Measured] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def add(self, metric: str, value: float | None, unit: str = "") -> None:
        """A value; nothing for None and for 0: a rate or a latency of nothing is a test that did not run."""
        if value:
            self.measured.append(Measured(metric, value, unit))

    def add_most(self, metric: str, ending: str, start: str = "") -> None:
        """The largest of the values whose names begin and end so: it compares machines of different sizes."""
        told = [one for one in self.measured if one.metric.endswith(ending) and one.metric.startswith(start)]
        if told:
            self.measured.append(Measured(metric, max(one.value for one in told), told[0].unit))

    def fault(self, place: int, reason: str, raw: str) -> None:
        """A line that could not be used."""
        self.faults.append(Fault(place, reason, raw[:RAW_SHOWN]))


def number_of(text: str) -> float | None:
    """A finite number, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def csv_rows(text: str, needed: tuple[str, ...], printed: Printed) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The rows of a CSV text with their lines; needed: columns of numbers.

    A row with another number of fields, or no number where one is needed, becomes a fault."""
    names: list[str] = []
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        fields = next(csv.reader([line]), [])
        if not names:
            names = fields
            if lacking := [name for name in needed if name not in names]:
                printed.fault(place, f"no column {lacking[0]}", line)
                return
            continue
        if len(fields) != len(names):
            printed.fault(place, f"{len(fields)} fields; the header has {len(names)}", line)
            continue
        row = dict(zip(names, fields, strict=True))
        if wrong := [name for name in needed if number_of(row[name]) is None]:
            printed.fault(place, f"{wrong[0]} is no finite number", line)
            continue
        yield place, row
