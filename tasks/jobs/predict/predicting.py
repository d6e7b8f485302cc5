"""Predictions by a trained model: of given submissions, and of the next run of each job."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.jobs.binned import Binned
from tasks.jobs.empirical import Empirical
from tasks.jobs.history import gather_history
from tasks.jobs.predict.features_earlier import earlier_runs
from tasks.jobs.predict.preparation import with_ends
from tasks.jobs.predict.trained import Trained

LAST_RUNS = 10  # the next run is predicted as if it came under the conditions of each of these
ATOMS = 50  # quantiles that stand for the prediction under one of them
MOMENT = np.timedelta64(1, "us")


@dataclass(frozen=True)
class NextRuns:
    """Of each job, in the order of `jobs`: group_key, n_before, last_at, usual_s. predicted: (n_jobs,) distributions;
    conditions: the submissions that they were made of, with `job`, the row of `jobs`; features: of those."""

    jobs: pd.DataFrame
    predicted: Empirical
    conditions: pd.DataFrame
    features: pd.DataFrame


def predict_rows(trained: Trained, rows: pd.DataFrame, past: pd.DataFrame) -> Binned:
    """Distributions of submissions that know the runs of `past` that ended before them. rows: as make_features takes
    them; past: finished runs as read_runs has them."""
    past = with_ends(past[past["group_key"].isin(rows["group_key"].unique())].reset_index(drop=True))
    features = trained.features(rows, past)
    own = trained.model.own_runs(features, earlier_runs(rows, past), trained.bins_of(past))
    return trained.model.predict(features, own)


def next_conditions(past: pd.DataFrame, *, last_runs: int = LAST_RUNS) -> pd.DataFrame:
    """Submissions at the end of the log, under what was known before each of the last runs of each job.

    Nobody knows yet what the next run will read, or under which load: its last runs show what it may be. The columns
    of past, with submitted_at just after the last end of all and without anything that is known only afterwards."""
    now = max(past["ended_at"].max(), past["submitted_at"].max()) + MOMENT
    last = past.groupby("group_key", sort=True).tail(last_runs)
    return last.sort_values(["group_key", "submitted_at", "run_id"]).assign(submitted_at=now).reset_index(drop=True)


def predict_next(trained: Trained, past: pd.DataFrame, *, last_runs: int = LAST_RUNS) -> NextRuns:
    """The next run of every job in `past`, finished runs as read_runs has them."""
    past = with_ends(past)
    conditions = next_conditions(past, last_runs=last_runs)
    jobs = (
        past.groupby("group_key", sort=True)
        .agg(n_before=("run_id", "size"), last_at=("submitted_at", "max"), usual_s=("runtime_s", "median"))
        .reset_index()
    )
    job = pd.Index(jobs["group_key"]).get_indexer(pd.Index(conditions["group_key"]))
    features = trained.features(conditions, past)
    own = trained.model.own_runs(features, earlier_runs(conditions, past), trained.bins_of(past))
    told = trained.model.predict(features, own)
    predicted = pooled(told, job)
    return NextRuns(jobs, predicted, conditions.assign(job=job), features)


def pooled(told: Binned, job: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Empirical:
    """One distribution a job: the mean of those of its conditions. job: (n,), 0 … n_jobs - 1."""
    values, weights = told.atoms(ATOMS)
    history = gather_history(values.ravel(), np.repeat(job, values.shape[1]), weights.ravel())
    return Empirical(history, np.arange(history.n_groups))
