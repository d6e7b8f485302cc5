"""Recorded metrics as numbers in one unit each: rows as arrays, base units, totals as rates.

Unification (Perona, III-B 1): all values of a metric in one base unit.

A metric is a column: its benchmark type and its name. What was written in a unit that cannot become the column's base
unit stays apart, and is counted.

A cost (seconds of CPU a byte, as qperf gives it in sec/GB) stays a cost, and less of it is better. The authors' code
makes a bandwidth of it, 1000 / x: which is none that was measured, is infinite for a cost that was printed as 0, and
turns slight noise near 0 into the largest values of the column.

Totals that grow with the run become rates: bytes moved become bytes a second (the authors' code; not in the paper).

Only metrics that the tool's facts call cumulative are divided, by a time of the same execution. Every total is divided
as it was read: a time that is itself divided by another still divides in seconds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pint
from numpy.typing import NDArray

from tasks.nodes.tools.parsing import DURATION, MetricFacts
from tasks.nodes.type_tables import Floats, Ints

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
megabit_rate = 1e6 * bit_rate = mbps
gigabit_rate = 1e9 * bit_rate = gbps
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


def spelled(unit: str, benchmark: str = "") -> tuple[list[str], list[str]] | None:
    """The words of a unit above the line and below it, in the meaning that the benchmark's tool gives them.

    None if it is no unit at all; no words for a plain number."""
    text = SIGNS.get(unit.strip(), unit.strip())
    if text.lower() in PLAIN:
        return [], []
    sides = PER.split(text if text[0] != "/" else f"1{text}")
    if len(sides) > 2 or (len(sides) == 2 and not sides[1]):
        return None
    above, below = (_words(side, benchmark) for side in [*sides, ""][:2])
    return None if above is None or below is None else (above, below)


def _words(side: str, benchmark: str) -> list[str] | None:
    words = []
    for word in side.replace("%", " percent ").split():
        if word != "1":
            tools = (binary for tool, binary in BINARY_BY_TOOL.items() if tool in benchmark)
            meant = next((binary[word] for binary in tools if word in binary), word)
            if not WORD.fullmatch(word) or TINY_INFORMATION.fullmatch(meant):
                return None
            words.append(meant)
    return words


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
            for word in words[0]:
                quantity = quantity * _quantity_of(word)
            for word in words[1]:
                quantity = quantity / _quantity_of(word)
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
    """pint with the units of DEFINITIONS and COUNTED and no others, made at first use."""
    made: Any = pint.UnitRegistry(None)
    made.load_definitions([*DEFINITIONS.split("\n"), *(f"{word} = 1" for word in COUNTED.split())])
    return made


def _quantity_of(word: str) -> Any:
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


@dataclass(frozen=True)
class Recorded:
    """triples: one row a distinct (type, benchmark, metric, unit), ordered by type, metric, unit, with n_values.

    execution, triple, value: (n_rows,) each; triple is a row number in `triples`. types: (n_executions,) names."""

    triples: pd.DataFrame
    execution: Ints
    triple: Ints
    value: Floats
    types: NDArray[np.object_]


Facts = Mapping[str, Mapping[str, MetricFacts]]  # by benchmark and metric
COLUMNS = ["type", "benchmark", "metric", "base", "units", "n_apart", "note"]


@dataclass(frozen=True)
class Unified:
    """Values in base units, ordered by column, then as they came.

    execution, value: (n_values,). edges: (n_columns + 1,); column c has the values from edges[c] to edges[c + 1]."""

    execution: Ints
    value: Floats
    edges: Ints

    def of(self, column: int) -> slice:
        """Where the values of a column stand."""
        return slice(int(self.edges[column]), int(self.edges[column + 1]))


def choose_columns(entries: Recorded, facts: Facts) -> pd.DataFrame:
    """One row a (type, metric), in this order: base unit, units as written, values apart and why.

    The base unit is the declared one where any value has it, else the one that most values have."""
    triples = _converted(entries.triples)
    rows = []
    for (kind, metric), group in triples.groupby(["type", "metric"], sort=True):
        benchmark = str(group["benchmark"].iloc[0])
        base = _base(group, facts.get(benchmark, {}).get(str(metric)), benchmark)
        is_in = group["base"] == base
        unknown = [
            f"unit {unit!r} is not known: a scale of its own" for unit in group["unit"][is_in & ~group["is_known"]]
        ]
        note = "; ".join([*unknown, *_apart(group[~is_in], base)])
        n_apart = int(group.loc[~is_in, "n_values"].sum())
        rows.append((kind, benchmark, metric, base, tuple(sorted(set(group.loc[is_in, "unit"]))), n_apart, note))
    return pd.DataFrame(rows, columns=COLUMNS)


def in_base_units(entries: Recorded, columns: pd.DataFrame) -> Unified:
    """The values of the columns (type, metric, base) in their base units."""
    triples = _converted(entries.triples).merge(
        columns[["type", "metric", "base"]].reset_index(names="column"), how="left"
    )
    column = triples["column"].fillna(-1).to_numpy(dtype=np.int64)  # -1: none, or another base unit
    of_row = column[entries.triple]
    order = np.argsort(of_row, kind="stable")
    order = order[np.searchsorted(of_row[order], 0) :]
    value = entries.value[order] * triples["factor"].to_numpy(dtype=np.float64)[entries.triple[order]]
    edges = np.searchsorted(of_row[order], np.arange(len(columns) + 1))
    return Unified(entries.execution[order], value, edges.astype(np.int64))


def _converted(triples: pd.DataFrame) -> pd.DataFrame:
    units = zip(triples["unit"], triples["benchmark"], strict=True)
    conversions = [conversion_of(str(unit), str(benchmark)) for unit, benchmark in units]
    return triples.assign(
        factor=np.array([conversion.factor for conversion in conversions], dtype=np.float64),
        base=np.array([conversion.base for conversion in conversions], dtype=object),
        is_known=np.array([conversion.is_known for conversion in conversions], dtype=bool),
    )


def _base(triples: pd.DataFrame, fact: MetricFacts | None, benchmark: str) -> str:
    counted = triples.groupby("base", sort=True)["n_values"].sum()
    declared: Conversion | None = conversion_of(fact.unit, benchmark) if fact else None
    return declared.base if declared and declared.base in counted.index else str(counted.idxmax())


def _apart(triples: pd.DataFrame, base: str) -> Iterator[str]:
    for row in triples.itertuples():
        why = f"which cannot become {base}" if row.is_known else "which is not known"
        yield f"{row.n_values} values in {row.unit!r}, {why}: apart"


SECONDS = "s"


def divisors(columns: pd.DataFrame, facts: Facts) -> list[str]:
    """For each column the metric that it is to be divided by, `duration` for that of the execution, or empty."""
    keys = zip(columns["benchmark"], columns["metric"], strict=True)
    metric_facts = (facts.get(benchmark, {}).get(metric) for benchmark, metric in keys)
    return [(fact.is_cumulative_over or "") if fact else "" for fact in metric_facts]


def as_rates(unified: Unified, columns: pd.DataFrame, divided_by: Sequence[str], duration_s: Floats) -> Unified:
    """The values, totals divided by their time.

    columns: type, metric, base. divided_by: as divisors gives it. duration_s: (n_executions,) of the executions. A
    total of an execution without a time above 0 is left out: it is not comparable with others."""
    if not any(divided_by):
        return unified
    place = {key: at for at, key in enumerate(zip(columns["type"], columns["metric"], strict=True))}
    bases = columns["base"].tolist()
    value = unified.value.copy()
    for at, (kind, metric) in enumerate(zip(columns["type"], divided_by, strict=True)):
        if not metric:
            continue
        seconds = duration_s
        if metric != DURATION:
            over = place.get((kind, metric))
            seconds = np.full(len(duration_s), np.nan)
            if over is not None and bases[over] == SECONDS:
                seconds[unified.execution[unified.of(over)]] = unified.value[unified.of(over)]
        divisor_s = seconds[unified.execution[unified.of(at)]]
        value[unified.of(at)] /= np.where(divisor_s > 0, divisor_s, np.nan)
    is_there = np.isfinite(value)
    edges = np.concatenate([[0], np.cumsum(is_there)])[unified.edges].astype(np.int64)
    return Unified(unified.execution[is_there], value[is_there], edges)


def declared_facts() -> Facts:
    """Facts by benchmark and metric; foreign benchmarks have none."""
    from tasks.nodes.tools import PARSERS

    return {benchmark: parser.metrics for benchmark, parser in PARSERS.items()}
