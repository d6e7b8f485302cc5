"""The runs that explanations are made tables of and checked on: those that the model in use did not learn from."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.normalisation import historic_medians
from tasks.jobs.predict.features_earlier import earlier_runs
from tasks.jobs.predict.periods import assign_periods
from tasks.jobs.predict.trained import Trained

Places = NDArray[np.intp]


@dataclass(frozen=True)
class HeldOut:
    """runs: of read_runs with median_s (usual time of the job, from D1); features: (n, p) of them, row by row.

    test: rows of D3 that the model did not learn from; training: rows that it did; usual: (m,) rows by job and time;
    first, n_usual: (n_test,) the stretch of `usual` that are the runs of its job before each test row."""

    runs: pd.DataFrame
    features: pd.DataFrame
    test: Places
    training: Places
    usual: Places
    first: Places
    n_usual: Places


def describe_held_out(trained: Trained, runs: pd.DataFrame, *, max_runs: int, usual_runs: int) -> HeldOut:
    """Split as in training, draw evenly over time, and describe by the features of the model.

    runs: of read_runs, all of the source, with ended_at filled; index 0 … n - 1. max_runs: test rows, and training
    rows, at most; usual_runs: earlier runs of a job. Raises BadInput without a run to hold out."""
    asked = trained.params.characterise
    part = assign_periods(runs, asked.split)
    medians = historic_medians(runs.assign(part=part), trained.history_s, asked.normalisation)
    runs = runs.assign(part=part, median_s=medians["median_s"], median_source=medians["median_source"])
    is_seen = runs["run_id"].isin(trained.seen["run_id"]).to_numpy()
    is_test = ~is_seen & (part == "D3").to_numpy()
    if not is_test.any():
        problem = "no run in D3 that the model did not learn from"
        raise BadInput("job log", problem, "later runs, to check explanations on", "ingest more of the log")
    test, training = _even(np.flatnonzero(is_test), max_runs), _even(np.flatnonzero(is_seen), max_runs)
    usual, first, n_usual = _before(runs, test, usual_runs)
    rows = np.unique(np.concatenate([test, training, usual]))
    asked_of = runs.iloc[rows]
    features = trained.features(asked_of, runs[runs["group_key"].isin(asked_of["group_key"].unique())])
    test, training, usual = (np.searchsorted(rows, some) for some in (test, training, usual))
    runs, features = asked_of.reset_index(drop=True), features.reset_index(drop=True)
    return HeldOut(runs, features, test, training, usual, first, n_usual)


def _before(runs: pd.DataFrame, test: Places, most: int) -> tuple[Places, Places, Places]:
    """The latest runs of the job of each test row that had ended before its submission: places in `runs` by job and
    time, (m,), and for each test row the first of its own and how many they are, (n_test,)."""
    earlier = earlier_runs(runs.iloc[test], runs)
    n = np.minimum(earlier.n, most).astype(np.intp)
    first = np.where(n > 0, earlier.last - n + 1, 0).astype(np.intp)
    change = np.zeros(len(earlier.order) + 1, dtype=np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, first + n, -1)
    is_needed = change.cumsum()[:-1] > 0
    moved = np.cumsum(is_needed) - 1  # a stretch stays a stretch among those that are needed
    usual = np.asarray(earlier.order[is_needed], dtype=np.intp)
    return usual, (np.where(n > 0, moved[first], 0) if len(moved) else first).astype(np.intp), n


def _even(places: Places, most: int) -> Places:
    """At most so many of them, evenly over their order."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.intp)]
