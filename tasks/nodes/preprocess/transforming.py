"""Executions as vectors, by what fitting learned."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.nodes.history import History
from tasks.nodes.preprocess.fitted import Preprocessor
from tasks.nodes.preprocess.fitting import durations
from tasks.nodes.preprocess.recorded import Bools, Floats, Ints, Recorded, recorded
from tasks.nodes.preprocess.run_time import as_rates
from tasks.nodes.preprocess.scaling import scaled, softly_clipped
from tasks.nodes.preprocess.unification import Unified, in_base_units


@dataclass(frozen=True)
class LeftOut:
    """What had no place. types: executions of each type that training did not have. metrics: values of each metric that
    training did not have, by column name. units: values whose unit cannot become that of their column."""

    types: Mapping[str, int]
    metrics: Mapping[str, int]
    units: Mapping[str, int]


@dataclass(frozen=True)
class Prepared:
    """Executions as vectors of the kept metrics.

    executions: the rows of the history. columns: (m,) names, `<benchmark type>/<metric>`; these two as column_types and
    metrics; units: base units, (m,).
    natural: (n, m) in base units, NaN where not measured. orientation: (m,) 1 where more is better, -1 where less is.
    scaled: (n, m), larger is better, missing values filled in. types: (k,) of training. one_hot: (n, k), all 0 for a
    type that is not among them. mirrored_about: (m,), the oriented value of x is mirrored_about - x where less is
    better: 0, or least + greatest with the paper's scaling."""

    executions: pd.DataFrame
    columns: tuple[str, ...]
    column_types: tuple[str, ...]
    metrics: tuple[str, ...]
    units: tuple[str, ...]
    natural: Floats
    orientation: Ints
    scaled: Floats
    types: tuple[str, ...]
    one_hot: Floats
    mirrored_about: Floats
    left_out: LeftOut

    @property
    def is_own(self) -> Bools:
        """Which values were measured, (n, m); the others of `scaled` are filled in."""
        return ~np.isnan(self.natural)

    @property
    def oriented(self) -> Floats:
        """Natural values with the larger the better, (n, m); NaN where not measured."""
        return np.where(self.orientation > 0, self.natural, self.mirrored_about - self.natural)


def transform(preprocessor: Preprocessor, history: History) -> Prepared:
    """The vectors of executions, training ones or others. Metrics and types that training lacked are counted.

    Raises ValueError for a value that is not finite."""
    found = recorded(history)
    columns = preprocessor.columns()
    divided_by = columns["divided_by"].tolist()
    unified = as_rates(in_base_units(found, columns), columns, divided_by, durations(history.executions))
    kept = preprocessor.kept
    place = columns["place"].to_numpy(dtype=np.int64)[unified.column]
    is_kept = place >= 0
    execution, place, value = unified.execution[is_kept], place[is_kept], unified.value[is_kept]
    natural = np.full((len(found.types), len(kept)), np.nan)
    natural[execution, place] = value
    orientation = np.array([metric.orientation.sign for metric in kept], dtype=np.int64)
    return Prepared(
        executions=history.executions,
        columns=tuple(metric.name for metric in kept),
        column_types=tuple(metric.type for metric in kept),
        metrics=tuple(metric.metric for metric in kept),
        units=tuple(metric.base for metric in kept),
        natural=natural,
        orientation=orientation,
        scaled=_scaled(preprocessor, natural.shape, execution, place, value),
        types=preprocessor.types,
        one_hot=_one_hot(found.types, preprocessor.types),
        mirrored_about=_mirrors(preprocessor),
        left_out=_left_out(preprocessor, found, unified),
    )


def _scaled(preprocessor: Preprocessor, shape: tuple[int, ...], execution: Ints, place: Ints, value: Floats) -> Floats:
    """(n, m): the measured values scaled one by one, the fill of each column everywhere else."""
    kept, params = preprocessor.kept, preprocessor.params
    scales = [metric.scale for metric in kept if metric.scale is not None]
    sign = np.array([metric.orientation.sign for metric in kept], dtype=np.float64)
    is_logarithmic = np.array([one.is_logarithmic for one in scales], dtype=bool)
    centre, spread = np.array([one.centre for one in scales]), np.array([one.spread for one in scales])

    def on_scale(values: Floats, of: Ints) -> Floats:
        z = scaled(values, sign[of], is_logarithmic[of], centre[of], spread[of])
        return z if params.scales == "min_max" else softly_clipped(z, params.clip_from, params.clip_at)

    fill = on_scale(np.array([one.fill for one in scales]), np.arange(len(scales)))
    found = np.tile(fill, (shape[0], 1))
    found[execution, place] = on_scale(value, place)
    return found


def _one_hot(names: NDArray[np.object_], types: tuple[str, ...]) -> Floats:
    of = pd.Index(types, dtype=object).get_indexer(pd.Index(names, dtype=object))
    found = np.zeros((len(names), len(types)))
    known = np.flatnonzero(of >= 0)
    found[known, of[known]] = 1
    return found


def _mirrors(preprocessor: Preprocessor) -> Floats:
    if preprocessor.params.scales != "min_max":
        return np.zeros(len(preprocessor.kept))
    spreads = [metric.spread for metric in preprocessor.kept if metric.spread is not None]
    return np.array([one.least + one.greatest for one in spreads])


def _left_out(preprocessor: Preprocessor, found: Recorded, unified: Unified) -> LeftOut:
    kinds = pd.Series(found.types, dtype=object).value_counts(sort=False)
    unseen = {str(name): int(count) for name, count in kinds.items() if name not in preprocessor.types}
    apart = unified.apart[unified.apart["type"].isin(preprocessor.types)]
    names = apart["type"] + "/" + apart["metric"]
    counts = {
        reason: apart["n_values"].groupby(names[apart["reason"] == reason]).sum() for reason in ("metric", "unit")
    }
    return LeftOut(unseen, _as_counts(counts["metric"]), _as_counts(counts["unit"]))


def _as_counts(counts: pd.Series) -> dict[str, int]:
    return {str(name): int(count) for name, count in counts.items()}
