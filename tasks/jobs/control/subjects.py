"""The rows that a change is tried on, and what a trained model predicts of them when their features are changed."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.boosters import matrix
from tasks.errors import BadInput
from tasks.jobs.binned import Binned
from tasks.jobs.control.placement import Placement
from tasks.jobs.distribution import Floats
from tasks.jobs.normalisation import historic_medians
from tasks.jobs.predict.features_earlier import earlier_runs
from tasks.jobs.predict.own_runs import Ints
from tasks.jobs.predict.periods import assign_periods
from tasks.jobs.predict.trained import Trained


@dataclass(frozen=True)
class Subjects:
    """runs: (n,) submissions in order; features: (n, p) of them as they are; own: (n, n_bins) the earlier runs of their
    jobs; medians_s: (n,) historic medians, NaN where unknown."""

    trained: Trained
    runs: pd.DataFrame
    features: pd.DataFrame
    own: Floats
    medians_s: Floats
    placement: Placement

    def predict(self, frame: pd.DataFrame) -> Binned:
        """Distributions of the same rows with other features: (n,).

        Earlier runs count by what they took against what was expected, and that stays: a job that takes 20 % longer
        than expected is taken to do so after the change as well. (Counted again against the changed expectation,
        runtimes from before the change would pull the prediction back to them.) Where the change moves vertices to
        another SKU, what that does to runs of the same job is added (`placement`)."""
        told = self.trained.model.predict(frame, self.own)
        factor = np.exp(self.placement.log_shift(self.features, frame))
        return replace(told, medians_s=told.medians_s * factor)


def make_subjects(
    trained: Trained, rows: pd.DataFrame, past: pd.DataFrame, bins: Ints, placement: Placement
) -> Subjects:
    """rows: submissions; past: finished runs of the log, none of them done again with a change, as read_runs has them;
    bins: (n_past,) of Trained.bins_of. A row knows the runs of `past` that ended before it."""
    is_asked = past["group_key"].isin(rows["group_key"].unique()).to_numpy()
    own_past, own_bins = past[is_asked].reset_index(drop=True), bins[is_asked]
    features = trained.features(rows, own_past)
    own = trained.model.own_runs(features, earlier_runs(rows, own_past), own_bins)
    normalisation = trained.params.characterise.normalisation
    medians = historic_medians(rows, trained.history_s, normalisation, past=own_past)["median_s"]
    return Subjects(trained, rows, features, own, medians.to_numpy(dtype=float), placement)


def held_out_rows(trained: Trained, past: pd.DataFrame, most: int) -> pd.DataFrame:
    """Runs of D3 that the model did not learn from, at most so many, evenly over time. past: runs of the log.

    Raises BadInput without one."""
    is_test = (assign_periods(past, trained.params.characterise.split) == "D3").to_numpy()
    places = np.flatnonzero(is_test & ~_is_seen(trained, past))
    if not len(places):
        problem = "no run of the last part of the log that the model did not learn from"
        raise BadInput("what-if", problem, "later runs, to try the change on", "ingest more of the log")
    return _even(past, places, most)


def training_rows(trained: Trained, past: pd.DataFrame, most: int) -> pd.DataFrame:
    """Runs that the model learnt from, at most so many, evenly over time."""
    return _even(past, np.flatnonzero(_is_seen(trained, past)), most)


def _is_seen(trained: Trained, runs: pd.DataFrame) -> NDArray[np.bool_]:
    return np.asarray(runs["run_id"].isin(trained.seen["run_id"]))


def _even(runs: pd.DataFrame, places: NDArray[np.intp], most: int) -> pd.DataFrame:
    if len(places) > most:
        places = places[np.linspace(0, len(places) - 1, most).astype(np.intp)]
    return runs.iloc[places].reset_index(drop=True)


def leaves_of(trained: Trained, frame: pd.DataFrame) -> Ints:
    """The leaf of each tree of the expected runtime that a row falls into: (n, n_trees)."""
    rows = matrix(frame[list(trained.model.columns)])
    found = trained.model.location.booster.predict(rows, pred_leaf=True, num_threads=1)
    return np.asarray(found, dtype=np.int64).reshape(len(frame), -1)


def held_out_residuals(trained: Trained, runs: pd.DataFrame) -> Floats:
    """Log of runtime over what a model without the run expected, to the width of a bin: (n,), NaN if not trained on."""
    edges = trained.model.spread.grid.log_edges
    middles = (edges[:-1] + edges[1:]) / 2
    bins = runs["run_id"].map(trained.seen.set_index("run_id")["bin"])
    found = middles[bins.fillna(0).to_numpy(dtype=np.int64)]
    return np.where(bins.notna().to_numpy(), found, np.nan)
