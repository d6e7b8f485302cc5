"""The metric rows of a history as numbers: each distinct (type, metric, unit) once, and which of them each row is."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.nodes.aspects import type_names
from tasks.nodes.history import History

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Recorded:
    """triples: one row a distinct (type, benchmark, metric, unit), ordered by type, metric, unit, with n_values.

    execution, triple, value: (n_rows,) each; triple is a row number in `triples`. types: (n_executions,) names."""

    triples: pd.DataFrame
    execution: Ints
    triple: Ints
    value: Floats
    types: NDArray[np.object_]


def recorded(history: History) -> Recorded:
    """The metric rows of a history. Raises ValueError for a value that is not finite: readers refuse those."""
    value = history.metrics["value"].to_numpy(dtype=np.float64)
    execution = history.metrics["execution"].to_numpy(dtype=np.int64)
    if not np.isfinite(value).all():
        row = int(np.flatnonzero(~np.isfinite(value))[0])
        raise ValueError(
            f"metric {history.metrics['metric'].iloc[row]!r} of execution {execution[row]} has the value {value[row]}; "
            f"expected finite numbers (readers put others into quarantine)"
        )
    names = type_names(history.executions)
    (type_of, types), (metric, metrics), (unit, units) = map(
        _coded, (names, history.metrics["metric"], history.metrics["unit"])
    )
    triple, codes = _distinct((type_of[execution] * len(metrics) + metric) * len(units) + unit)
    benchmark = pd.Series(history.executions["benchmark"].to_numpy(), index=names.to_numpy(dtype=object))
    benchmark = benchmark[~benchmark.index.duplicated()]
    pair, unit_of = np.divmod(codes, len(units))
    kind, metric_of = np.divmod(pair, len(metrics))
    triples = pd.DataFrame(
        {
            "type": types[kind],
            "benchmark": benchmark.reindex(types[kind]).to_numpy(dtype=object),
            "metric": metrics[metric_of],
            "unit": units[unit_of],
            "n_values": np.bincount(triple, minlength=len(codes)).astype(np.int64),
        }
    )
    return Recorded(triples, execution, triple, value, names.to_numpy(dtype=object))


def _coded(column: pd.Series) -> tuple[Ints, NDArray[np.object_]]:
    """The place of each text among the distinct ones, which end with the empty text for what is missing."""
    codes, texts = pd.factorize(column, sort=True)
    names = np.append(np.asarray(texts, dtype=object), "")
    return np.where(codes < 0, len(names) - 1, codes).astype(np.int64), names


def _distinct(code: Ints) -> tuple[Ints, Ints]:
    """The place of each number among the distinct ones, and these, rising."""
    places, codes = pd.factorize(code, sort=True)
    return places.astype(np.int64), np.asarray(codes, dtype=np.int64)
