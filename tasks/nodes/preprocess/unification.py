"""Unification (Perona, III-B 1): all values of a metric in one base unit.

A metric is a column: its benchmark type and its name. What was written in a unit that cannot become the column's base
unit stays apart, and is counted.

A cost (seconds of CPU a byte, as qperf gives it in sec/GB) stays a cost, and less of it is better. The authors' code
makes a bandwidth of it, 1000 / x: which is none that was measured, is infinite for a cost that was printed as 0, and
turns slight noise near 0 into the largest values of the column."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.preprocess.recorded import Floats, Ints, Recorded
from tasks.nodes.preprocess.units import Conversion, conversion_of
from tasks.nodes.tools.facts import MetricFacts

Facts = Mapping[str, Mapping[str, MetricFacts]]  # by benchmark and metric
COLUMNS = ["type", "benchmark", "metric", "base", "units", "n_apart", "note"]


@dataclass(frozen=True)
class Unified:
    """Values in base units, ordered by column, then as they came.

    execution, value: (n_values,). edges: (n_columns + 1,); column c has the values from edges[c] to edges[c + 1].
    apart: rows of Recorded.triples that are in no column, with the reason."""

    execution: Ints
    value: Floats
    edges: Ints
    apart: pd.DataFrame

    def of(self, column: int) -> slice:
        """Where the values of a column stand."""
        return slice(int(self.edges[column]), int(self.edges[column + 1]))

    @property
    def column(self) -> Ints:
        """The column of each value, (n_values,)."""
        return np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))


def choose_columns(found: Recorded, facts: Facts) -> pd.DataFrame:
    """One row a (type, metric), in this order: base unit, units as written, values apart and why.

    The base unit is the declared one where any value has it, else the one that most values have."""
    triples = _converted(found.triples)
    rows = []
    for (kind, metric), own in triples.groupby(["type", "metric"], sort=True):
        benchmark = str(own["benchmark"].iloc[0])
        base = _base(own, facts.get(benchmark, {}).get(str(metric)), benchmark)
        is_in = own["base"] == base
        note = "; ".join([*_unknown(own[is_in]), *(f"{reason}: apart" for reason in _reasons(own[~is_in], base))])
        n_apart = int(own.loc[~is_in, "n_values"].sum())
        rows.append((kind, benchmark, metric, base, tuple(sorted(set(own.loc[is_in, "unit"]))), n_apart, note))
    return pd.DataFrame(rows, columns=COLUMNS)


def in_base_units(found: Recorded, columns: pd.DataFrame) -> Unified:
    """The values of the columns (type, metric, base) in their base units."""
    triples = _converted(found.triples)
    keys = pd.MultiIndex.from_frame(columns[["type", "metric"]])
    column = keys.get_indexer(pd.MultiIndex.from_frame(triples[["type", "metric"]])) if len(keys) else np.array([])
    column = column.astype(np.int64) if len(keys) else np.full(len(triples), -1, dtype=np.int64)
    expected = np.array([*columns["base"], None], dtype=object)[column]
    is_unlike = (column >= 0) & (triples["base"].to_numpy(dtype=object) != expected)
    reason = np.where(is_unlike, "unit", np.where(column < 0, "metric", ""))
    column = np.where(is_unlike, -1, column)
    of_row = column[found.triple]
    order = np.argsort(of_row, kind="stable")
    order = order[np.searchsorted(of_row[order], 0) :]
    value = found.value[order] * triples["factor"].to_numpy(dtype=np.float64)[found.triple[order]]
    edges = np.searchsorted(of_row[order], np.arange(len(columns) + 1))
    apart = triples.assign(reason=reason)[column < 0].reset_index(drop=True)
    return Unified(found.execution[order], value, edges.astype(np.int64), apart)


def _converted(triples: pd.DataFrame) -> pd.DataFrame:
    units = zip(triples["unit"], triples["benchmark"], strict=True)
    conversions = [conversion_of(str(unit), str(benchmark)) for unit, benchmark in units]
    return triples.assign(
        factor=np.array([one.factor for one in conversions], dtype=np.float64),
        base=np.array([one.base for one in conversions], dtype=object),
        is_known=np.array([one.is_known for one in conversions], dtype=bool),
    )


def _base(own: pd.DataFrame, fact: MetricFacts | None, benchmark: str) -> str:
    counted = own.groupby("base", sort=True)["n_values"].sum()
    declared: Conversion | None = conversion_of(fact.unit, benchmark) if fact else None
    return declared.base if declared and declared.base in counted.index else str(counted.idxmax())


def _unknown(own: pd.DataFrame) -> list[str]:
    return [f"unit {unit!r} is not known: a scale of its own" for unit in own.loc[~own["is_known"], "unit"]]


def _reasons(own: pd.DataFrame, base: str) -> list[str]:
    return [
        f"{row.n_values} values in {row.unit!r}, which is not known"
        if not row.is_known
        else f"{row.n_values} values in {row.unit!r}, which cannot become {base}"
        for row in own.itertuples()
    ]
