"""What benchmarks measure, and which executions may be compared: taken from the data, never from a list of six."""

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Aspect = Literal["cpu", "memory", "disk", "network", "system", "application", "unknown"]
APPLICATION: Aspect = "application"
HOUR_S = 3600.0
HASH_DIGITS = 8  # of a template's hash, in the name of a type


def type_names(executions: pd.DataFrame) -> pd.Series:
    """The benchmark type of each execution: the benchmark and, where it had one, `@` and its template's first digits.

    Executions of one benchmark with different templates did different work and are never compared (Perona, III-B)."""
    template = executions["template_hash"].fillna("").astype(str).str[:HASH_DIGITS]
    return executions["benchmark"].astype(str) + ("@" + template).where(template != "", "")


def is_stressed(executions: pd.DataFrame) -> pd.Series:
    """Whether each execution is known to have been stressed; where nobody says, false. A bool each."""
    return executions["is_stressed"].astype("boolean").fillna(False).astype(bool)


def is_contaminated(executions: pd.DataFrame) -> pd.Series:
    """Whether others are known to have used the machine while each execution ran; a bool each."""
    return executions["is_contaminated"].astype("boolean").fillna(False).astype(bool)


def is_unstressed(executions: pd.DataFrame) -> pd.Series:
    """Whether nothing is known against each execution: completed, not stressed, not contaminated; a bool each.

    This is what normal means wherever something is learned from what is normal, ranked, or watched."""
    is_completed = executions["status"] == "completed"
    return is_completed & ~is_stressed(executions) & ~is_contaminated(executions)


def time_places(executions: pd.DataFrame) -> NDArray[np.float64]:
    """Where each execution lies among those of its node and type, in the order of rows: (n,), from 0 to less than 1."""
    each = executions.assign(type=type_names(executions)).groupby(["node", "type"])["node"]
    return np.asarray((each.cumcount() / each.transform("size")).to_numpy(dtype=np.float64))


def hours_of(executions: pd.DataFrame) -> NDArray[np.float64]:
    """The start of each execution in hours since 1970: (n,), NaN where unknown."""
    since = pd.to_datetime(executions["started_at"]) - pd.Timestamp(0)
    return np.asarray(since.dt.total_seconds().to_numpy(dtype=np.float64) / HOUR_S)
