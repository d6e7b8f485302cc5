"""Predictions as time goes on: each block of runs by a model whose width suits the runs that had ended by then."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.binned import Binned
from tasks.jobs.predict.conditional import Conditional, calibrated
from tasks.jobs.predict.features_earlier import earlier_runs
from tasks.jobs.predict.own_runs import Ints
from tasks.jobs.predict.predictor_params import PredictorParams

MOST_BLOCKS = 40  # of a long test period, so that setting the width does not take longer than all else


def predict_in_time(
    model: Conditional,
    features: pd.DataFrame,
    runs: pd.DataFrame,
    bins: Ints,
    rows: NDArray[np.intp],
    first_new: int,
    params: PredictorParams,
) -> Binned:
    """Distributions of the runs at `rows`, ascending places in `runs`, in order of submission.

    features: (n, p) of all runs; bins: (n,) of residual_bins; first_new: place of the first run that the model did
    not learn from. Before each block the width is set by the last runs since then that had ended, as a deployed model
    is set by what it has just foretold (adaptive conformal inference, Gibbs & Candès 2021, in blocks)."""
    lean, made = params.lean, []
    own = model.own_runs(features.iloc[rows], earlier_runs(runs.iloc[rows], runs), bins)
    size = max(lean.block_runs, -(-len(rows) // MOST_BLOCKS))
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        now = runs["submitted_at"].iloc[rows[block][0]]
        known = np.flatnonzero((runs["ended_at"] < now).to_numpy()[first_new:]) + first_new
        used = known[-lean.calibration_runs :]
        if len(used) >= lean.min_calibration_runs:
            model = _calibrated(model, features, runs, bins, used)
        made.append(model.predict(features.iloc[rows[block]], own[block]))
    return Binned(
        model.spread.grid.edges,
        np.concatenate([one.shapes for one in made]),
        np.concatenate([one.medians_s for one in made]),
        "ratio",
    )


def calibrated_at_end(
    model: Conditional, features: pd.DataFrame, runs: pd.DataFrame, bins: Ints, first_new: int, params: PredictorParams
) -> Conditional:
    """The model as it is to be used from now on: its width set by the last runs that it did not learn from."""
    used = np.arange(first_new, len(runs))[-params.lean.calibration_runs :]
    if len(used) < params.lean.min_calibration_runs:
        return model
    return _calibrated(model, features, runs, bins, used)


def _calibrated(
    model: Conditional, features: pd.DataFrame, runs: pd.DataFrame, bins: Ints, used: NDArray[np.intp]
) -> Conditional:
    asked = features.iloc[used]
    own = model.own_runs(asked, earlier_runs(runs.iloc[used], runs), bins)
    return calibrated(model, asked, own, runs["runtime_s"].to_numpy(dtype=float)[used])
