"""What is known of a run when it is submitted, as one row of numbers: the input of the classifiers."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd

from tasks.jobs.predict.feature_params import FeatureParams
from tasks.jobs.predict.feature_words import in_order, pattern_of
from tasks.jobs.predict.features_earlier import EarlierRuns, Floats, earlier_runs
from tasks.jobs.predict.features_history import history_features
from tasks.jobs.predict.features_known import known_features
from tasks.jobs.predict.features_shapes import HistoricShapes, medians_of_past, shape_features
from tasks.jobs.predict.features_usage import usage_features
from tasks.jobs.predict.peers import peer_features
from tasks.jobs.shape_params import (
    Kind,
    NormalisationParams,
)

COUNTED = ("op_<operator>", "offered_<sku>", "vertices_<sku>_mean", "vertex_share_<sku>_mean")


def make_features(
    runs: pd.DataFrame,
    past: pd.DataFrame,
    params: FeatureParams,
    *,
    shapes: Mapping[Kind, HistoricShapes] | None = None,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """One row of features for each of `runs`: float64, NaN where unknown, on the index of `runs`.

    runs: group_key, submitted_at and whatever read_runs has of the log: only what is known at submission is read.
    past: finished runs of all jobs as read_runs has them; only those that ended strictly before the row's submission
    count, so past and runs may overlap. The names are those of FEATURES, in its order.
    A feature of which the log has nothing is left out. With `columns`, those of a trained model, exactly these come
    back in their order: NaN where the log has nothing, 0 for an operator or SKU that is new to it only by its
    absence here. Raises BadInput without a needed column, NotFound for a name that no feature has.
    Source: Zhu et al. 2023, section 5.1."""
    earlier = earlier_runs(runs, past)
    found = known_features(runs, earlier, params) | usage_features(earlier)
    found |= _runtime_features(runs, earlier, params, list((shapes or {}).values()))
    found |= peer_features(runs, past)
    if columns is None:
        names = [name for name in in_order(found) if not any(fnmatchcase(name, out) for out in params.left_out)]
    else:
        names = list(columns)
    return pd.DataFrame(
        {name: found[name] if name in found else _absent(name, found, len(runs)) for name in names},
        index=runs.index,
        dtype=float,
    )


def _runtime_features(
    runs: pd.DataFrame, earlier: EarlierRuns, params: FeatureParams, shapes: list[HistoricShapes]
) -> dict[str, Floats]:
    """What depends on the medians of D1: those of the first shapes, or none."""
    medians_s, normalisation = (shapes[0].medians_s, shapes[0].normalisation) if shapes else ({}, NormalisationParams())
    historic_s, past_s = earlier.by_job(medians_s), medians_of_past(earlier, medians_s, normalisation)
    found = history_features(runs, earlier, params, historic_s, past_s)
    for historic in shapes:
        is_same = np.array_equal(historic_s, earlier.by_job(historic.medians_s), equal_nan=True)
        is_known = is_same and historic.normalisation == normalisation  # as it is for ratio and delta of one D1
        own_s = past_s if is_known else medians_of_past(earlier, historic.medians_s, historic.normalisation)
        found |= shape_features(earlier, historic, own_s, evidence_runs=params.evidence_runs)
        found |= shape_features(earlier, historic, own_s, evidence_runs=params.recent_runs, prefix="recent_shape")
    return found


def _absent(name: str, found: dict[str, Floats], n_rows: int) -> Floats:
    """A column that the log lacks: 0 where others of its kind are known, as for an operator that no plan here has."""
    pattern = pattern_of(name)
    values = np.full(n_rows, np.nan)
    if pattern in COUNTED:
        for sibling in (other for other in found if pattern_of(other) == pattern):
            values[np.isfinite(found[sibling])] = 0.0
    return values
