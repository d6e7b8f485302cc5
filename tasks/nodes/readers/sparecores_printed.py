"""What an output of a benchmark gave: values, and lines that should have given some."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tasks.nodes.measured import Fault, Measured
from tasks.reading import csv_fields, encodable

RAW_SHOWN = 500
VALUE_SHOWN = 40


@dataclass
class Printed:
    """Values in the order of the output, metrics that it gave no value, and what could not be used, by line."""

    measured: list[Measured] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)

    def add(self, metric: str, value: object, unit: str = "", *, place: int = 1, raw: str = "") -> None:
        """A value that was told, a number or its text; None and 0 are missing: a rate or a latency of nothing is a test
        that did not run. Anything else that is no finite number above 0 is a fault at that line."""
        metric = encodable(metric)
        number = number_of(value) if isinstance(value, str) else _checked(value)
        told = f"{metric} ({_shown(value)})"
        if value is None or number == 0:
            self.missing.append(metric)
        elif number is None:
            self.fault(place, f"{told} is no finite number", raw or f"{metric}: {value}")
        elif number < 0:
            self.fault(place, f"{told} is negative", raw or f"{metric}: {value}")
        elif metric in self._known:
            self.fault(place, f"{told} stands there twice; the first counts", raw or f"{metric}: {value}")
        else:
            self._known.add(metric)
            self.measured.append(Measured(metric, number, unit))

    def add_most(self, metric: str, ending: str, start: str = "") -> None:
        """The largest of the values whose names begin and end so: it compares machines of different sizes."""
        told = [one for one in self.measured if one.metric.endswith(ending) and one.metric.startswith(start)]
        if told:
            self.measured.append(Measured(metric, max(one.value for one in told), told[0].unit))

    def fault(self, place: int, reason: str, raw: str) -> None:
        """A line that could not be used."""
        self.faults.append(Fault(place, reason, raw[:RAW_SHOWN]))

    def lacking(self) -> tuple[str, ...]:
        """The metrics without a value, each once."""
        known = {one.metric for one in self.measured}
        return tuple(dict.fromkeys(metric for metric in self.missing if metric not in known))


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
        try:
            fields = csv_fields(line)
        except ValueError as error:
            printed.fault(place, f"not a line of CSV ({error})", line)
            continue
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


def _checked(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _shown(value: object) -> str:
    return str(value)[:VALUE_SHOWN]
