"""Which executions may be compared, and those of one benchmark type as a table of its metrics, with robust statistics.

What benchmarks measure is taken from the data, never from a list of six. A vector over all types would be empty but for
a few places: tables hold what was measured alone, so that millions of executions fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Aspect = Literal["cpu", "memory", "disk", "network", "system", "application", "unknown"]
APPLICATION: Aspect = "application"
HOUR_S = 3600.0
FEWEST = 5  # executions from which a median and a deviation are told
HASH_DIGITS = 8  # of a template's hash, in the name of a type


def type_names(executions: pd.DataFrame) -> pd.Series:
    """The benchmark type of each execution: the benchmark and, where it had one, `@` and its template's first digits.

    Executions of one benchmark with different templates did different work and are never compared (Perona, III-B)."""
    template = executions["template_hash"].fillna("").astype(str).str[:HASH_DIGITS]
    return executions["benchmark"].astype(str) + ("@" + template).where(template != "", "")


def known(flags: pd.Series) -> pd.Series:
    """Which flags are known to be true; where nobody says, false. A bool each."""
    return flags.astype("boolean").fillna(False).astype(bool)


def is_stressed(executions: pd.DataFrame) -> pd.Series:
    """Whether each execution is known to have been stressed; a bool each."""
    return known(executions["is_stressed"])


def is_contaminated(executions: pd.DataFrame) -> pd.Series:
    """Whether others are known to have used the machine while each execution ran; a bool each."""
    return known(executions["is_contaminated"])


def is_unstressed(executions: pd.DataFrame) -> pd.Series:
    """Whether nothing is known against each execution: completed, not stressed, not contaminated; a bool each.

    This is what normal means wherever something is learned from what is normal, ranked, or watched."""
    is_completed = executions["status"] == "completed"
    return is_completed & ~is_stressed(executions) & ~is_contaminated(executions)


def time_places(executions: pd.DataFrame) -> NDArray[np.float64]:
    """Where each execution lies among those of its node and type, in the order of rows: (n,), from 0 to less than 1."""
    groups = executions.assign(type=type_names(executions)).groupby(["node", "type"])["node"]
    return np.asarray((groups.cumcount() / groups.transform("size")).to_numpy(dtype=np.float64))


def hours_of(executions: pd.DataFrame) -> NDArray[np.float64]:
    """The start of each execution in hours since 1970: (n,), NaN where unknown."""
    since = pd.to_datetime(executions["started_at"]) - pd.Timestamp(0)
    return np.asarray(since.dt.total_seconds().to_numpy(dtype=np.float64) / HOUR_S)


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class TypeTable:
    """name: the type, such as `cpu-sysbench@1a2b3c4d`. executions: (n,) rows of the history, rising, so in time order.

    nodes: (n,) numbers of nodes in `NodeNames`. metrics, units: (m,) names and base units. natural: (n, m) in base
    units, NaN where not measured. orientation: (m,) 1 where more is better, -1 where less is. scaled: (n, m) oriented
    and brought to one scale, NaN where not measured. is_directed: (m,) false where neither more nor less is better and
    the orientation is a guess; None: all are."""

    name: str
    aspect: str
    executions: Ints
    nodes: Ints
    metrics: tuple[str, ...]
    units: tuple[str, ...]
    natural: Floats
    orientation: Floats
    scaled: Floats
    is_directed: Bools | None = None

    def where(self, is_kept: Bools) -> "TypeTable":
        """The rows for which the mask (n,) is true."""
        return replace(
            self,
            executions=self.executions[is_kept],
            nodes=self.nodes[is_kept],
            natural=self.natural[is_kept],
            scaled=self.scaled[is_kept],
        )

    def of_metrics(self, is_kept: Bools) -> "TypeTable":
        """The metrics for which the mask (m,) is true."""
        return replace(
            self,
            metrics=tuple(np.array(self.metrics)[is_kept].tolist()),
            units=tuple(np.array(self.units)[is_kept].tolist()),
            natural=self.natural[:, is_kept],
            orientation=self.orientation[is_kept],
            scaled=self.scaled[:, is_kept],
            is_directed=None if self.is_directed is None else self.is_directed[is_kept],
        )


@dataclass(frozen=True)
class NodeTables:
    """nodes: names, by number. machine_types: theirs. tables: one a type that has a kept metric, by name.

    n_executions: of the history. n_left_out: of them, those that measured something, but nothing that the preprocessing
    knows: they are in no table."""

    nodes: tuple[str, ...]
    machine_types: tuple[str, ...]
    tables: tuple[TypeTable, ...]
    n_executions: int
    n_left_out: int = 0

    def of_executions(self, is_kept: Bools) -> "NodeTables":
        """With the rows of some executions alone, (n_executions,); types without any are dropped."""
        kept = [table.where(is_kept[table.executions]) for table in self.tables]
        return replace(self, tables=tuple(table for table in kept if len(table.executions)))

    def of_aspects(self, left_out: Sequence[str]) -> "NodeTables":
        """Without the types of some aspects."""
        return replace(self, tables=tuple(table for table in self.tables if table.aspect not in left_out))


SD_OF_MAD = 1.4826  # of a normal distribution: deviation over median absolute deviation
SD_OF_MEAN = 1.2533  # and over mean absolute deviation, where more than half the values are the median itself


def group_medians(values: Floats, groups: Ints, n_groups: int) -> Floats:
    """Median of each column in each group: (n_groups, m); NaN without a value. values: (n, m). groups: (n,)."""
    medians = pd.DataFrame(values).groupby(groups).median().reindex(range(n_groups))
    return medians.to_numpy(dtype=np.float64)


def robust_deviation(values: Floats) -> Floats:
    """Each column's robust standard deviation, from its median absolute deviation: (m,). values: (n, m).

    Where that is 0, as more than half the values are alike, from the mean one. NaN for a column without values."""
    frame = pd.DataFrame(values)
    size = (frame - frame.median()).abs()
    median = SD_OF_MAD * size.median().to_numpy(dtype=np.float64)
    mean = SD_OF_MEAN * size.mean().to_numpy(dtype=np.float64)
    return np.asarray(np.where(median == 0, mean, median))


def weighted_mean(values: Floats, weights: Floats) -> Floats:
    """Mean of values (…, k) with weights (k,) over the k that are there; NaN where none with a weight is. (…,)"""
    is_there = ~np.isnan(values)
    total = np.asarray(is_there @ weights, dtype=np.float64)
    sums = np.where(is_there, values, 0.0) @ weights
    return np.asarray(np.divide(sums, total, out=np.full(total.shape, np.nan), where=total > 0))
