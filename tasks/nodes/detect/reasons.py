"""Which metrics say that an execution is degraded, in the tool's own units: value, usual range, which way is worse.

    deviation = worse side of (ln x - median) / deviation     of the node's own last executions (deviations.py)

Only metrics with a better and a worse are reasons, and none of which the usual value is a few steps of what the tool's
text rounds to: 0.00 or 0.01 ms say nothing about latency. Headline metrics come before others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.detect.detector import FittedDetector, rows_of
from tasks.nodes.detect.deviations import RECENT, Centre, usual_of, windows_of, without_fleet_drift
from tasks.nodes.tools import resolution
from tasks.nodes.type_tables import Bools, Floats, NodeTables

MOST = 5  # reasons of an execution
LEAST_DEVIATION = 2.0
USUAL_DEVIATIONS = 2.0  # either side: about 95 of 100 executions
FAR = 100.0  # deviations beyond which one is like another
ROUNDED_STEPS = 50  # of what a tool rounds to: a usual value of fewer is no measurement
MORE_DIGITS, MOST_PLACES = 2, 6
COLUMNS = (
    "execution", "place", "metric", "unit", "value", "usual_low", "usual", "usual_high", "deviation", "is_headline",
    "higher_is_better",
)  # fmt: skip
SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


@dataclass(frozen=True)
class Reason:
    """One metric of an execution, as a person reads it."""

    metric: str
    unit: str
    value: float
    usual_low: float
    usual_high: float
    deviation: float
    higher_is_better: bool

    def words(self) -> str:
        """Such as "write_clat_avg 11.3 ms, usually 4.1 to 4.9: worse (9 deviations)"."""
        factor, unit = _scale(self.unit, max(abs(self.value), abs(self.usual_high)))
        ends = [one / factor for one in (self.value, self.usual_low, self.usual_high)]
        value, low, high = apart(ends)
        way = "worse" if self.deviation > 0 else "better"
        far = abs(self.deviation) >= FAR
        tail = f"beyond {FAR:.0f} deviations" if far else f"{abs(self.deviation):.0f} deviations"
        usual = low if low == high else f"{low} to {high}"
        return f"{self.metric} {value}{f' {unit}' if unit else ''}, usually {usual}: {way} ({tail})"


def reasons_of(fitted: FittedDetector, tables: NodeTables, at_h: Floats, is_asked: Bools) -> pd.DataFrame:
    """The metrics that say so, the most telling first: one row an execution and metric, with COLUMNS.

    is_asked: (n_executions,) executions that reasons are wanted for. value and usual range: in base units. deviation:
    positive where it is worse. An execution of which no metric is LEAST_DEVIATION worse has none."""
    parts = [pd.DataFrame(columns=list(COLUMNS))]
    for table in tables.tables:
        known = fitted.types.get(table.name)
        asked = np.flatnonzero(is_asked[table.executions])
        if known is None or known.metrics != table.metrics or not len(asked):
            continue
        rows, windows = rows_of(table, tables, at_h), windows_of(table, known.normal.is_positive)
        usual = usual_of(rows, known.normal, windows, RECENT[-1])
        z = without_fleet_drift(usual.deviations, rows)[asked]
        signs = np.where(known.signs != 0, known.signs, table.orientation * _directed(table.is_directed))
        typical = np.abs(natural_of(usual.centre.median[asked], known.normal.is_positive))
        is_told = ~_rounded(table.name, table.metrics, typical) & (signs != 0)
        worse = np.where(is_told & ~np.isnan(z), -z * signs, -np.inf)  # (k, m)
        is_first = (known.signs != 0) & (worse >= LEAST_DEVIATION)
        rank = np.minimum(worse, FAR) + np.where(is_first, FAR, 0.0)
        order = np.argsort(-rank, axis=1, kind="stable")[:, :MOST]
        row, place = np.nonzero(np.take_along_axis(worse, order, axis=1) >= LEAST_DEVIATION)
        column = order[row, place]
        low, middle, high = _range(usual.centre, known.normal.is_positive, asked, row, column)
        parts.append(
            pd.DataFrame(
                {
                    "execution": table.executions[asked[row]],
                    "place": place + 1,
                    "metric": np.array(table.metrics, dtype=object)[column],
                    "unit": np.array(table.units, dtype=object)[column],
                    "value": table.natural[asked[row], column],
                    "usual_low": low,
                    "usual": middle,
                    "usual_high": high,
                    "deviation": worse[row, column],
                    "is_headline": known.signs[column] != 0,
                    "higher_is_better": signs[column] > 0,
                }
            )
        )
    found = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    return found.sort_values(["execution", "place"], kind="stable", ignore_index=True)


def reason_of_row(row: pd.Series) -> Reason:
    """A row of reasons_of as a Reason."""
    value, low, high, deviation = (float(row[name]) for name in ("value", "usual_low", "usual_high", "deviation"))
    return Reason(str(row["metric"]), str(row["unit"]), value, low, high, deviation, bool(row["higher_is_better"]))


def apart(numbers: Sequence[float]) -> list[str]:
    """A value and the ends of a range, with three digits of the largest, or as many more as tell them apart."""
    known = [abs(one) for one in numbers if math.isfinite(one) and one]
    places = max(0, 2 - math.floor(math.log10(max(known)))) if known else 0
    for more in range(MORE_DIGITS + 1):
        words = [f"{one:,.{min(places + more, MOST_PLACES)}f}" if math.isfinite(one) else "–" for one in numbers]
        if words[0] not in words[1:]:
            break
    return ["0" if one.strip("-0.,") == "" else one for one in words]


def _scale(unit: str, largest: float) -> tuple[float, str]:
    """The unit that a number of this size is read in, and how many base units it is."""
    if unit in ("", "1"):
        return 1.0, ""
    ladder = SCALES.get(unit, ((1.0, "a second" if unit == "1/s" else unit),))
    return next(((factor, name) for factor, name in ladder if largest >= factor), ladder[-1])


def _directed(is_directed: Bools | None) -> Floats | float:
    return 1.0 if is_directed is None else is_directed.astype(np.float64)


def _rounded(name: str, metrics: tuple[str, ...], typical: Floats) -> Bools:
    """Metrics that the tool rounds away: (k, m)."""
    steps = np.array([resolution(name.split("@")[0], metric) for metric in metrics])
    return np.asarray((steps > 0) & (typical < ROUNDED_STEPS * steps))


def natural_of(values: Floats, is_positive: Bools) -> Floats:
    """From the scale of logarithms() back to base units. is_positive: of the last axis."""
    with np.errstate(over="ignore"):
        return np.asarray(np.where(is_positive, np.exp(values), np.sign(values) * np.expm1(np.abs(values))))


def _range(
    usual: Centre, is_positive: Bools, asked: np.ndarray, row: np.ndarray, column: np.ndarray
) -> tuple[Floats, Floats, Floats]:
    """Low end, middle and high end of the usual range in base units: (r,) each."""
    middle, spread = usual.median[asked[row], column], usual.deviation[asked[row], column]
    ends = (middle - USUAL_DEVIATIONS * spread, middle, middle + USUAL_DEVIATIONS * spread)
    low, centre, high = (natural_of(one, is_positive[column]) for one in ends)
    return low, centre, high
