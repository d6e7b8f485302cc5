"""Predictions by a trained model: of given submissions, and of the next run of each job."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.jobs.distribution import Floats, Predicted
from tasks.jobs.empirical import Empirical, gather_history
from tasks.jobs.predict.preparation import with_ends
from tasks.jobs.predict.trained import Trained
from tasks.jobs.shape_params import Kind

LAST_RUNS = 10  # the next run is predicted as if it came under the conditions of each of these
ATOMS = 400  # quantiles that stand for the prediction under one of them: chances to 0.25 % and finer
LEAST_ATOMS = 50
MOST_VALUES = 20_000_000  # of all of them together; above it, each prediction gets fewer
MOMENT = np.timedelta64(1, "us")


@dataclass(frozen=True)
class NextRuns:
    """Of each job, in the order of `jobs`: group_key, n_before, last_at, usual_s. predicted: (n_jobs,) distributions;
    conditions: the submissions that they were made of, with `job`, the row of `jobs`; features: of those."""

    jobs: pd.DataFrame
    predicted: Empirical
    conditions: pd.DataFrame
    features: pd.DataFrame


def predict_rows(trained: Trained, rows: pd.DataFrame, past: pd.DataFrame) -> Empirical:
    """Distributions of submissions that know the runs of `past` that ended before them. rows: as make_features takes
    them; past: finished runs of all jobs as read_runs has them."""
    past = with_ends(past)
    return trained.model.predict(trained.features(rows, past), trained.histories(rows, past))


def end_of(past: pd.DataFrame) -> pd.Timestamp:
    """The moment just after the last submission or end of finished runs, UTC."""
    return pd.Timestamp(max(past["ended_at"].max(), past["submitted_at"].max()) + MOMENT)


def next_conditions(past: pd.DataFrame, *, last_runs: int = LAST_RUNS, now: pd.Timestamp | None = None) -> pd.DataFrame:
    """Submissions at the end of the log, under what was known before each of the last runs of each job.

    Nobody knows yet what the next run will read, or under which load: its last runs show what it may be. The columns
    of past, with submitted_at `now`, by default just after the last end of all, without what is known afterwards."""
    now = end_of(past) if now is None else now
    last = past.groupby("group_key", sort=True).tail(last_runs)
    return last.sort_values(["group_key", "submitted_at", "run_id"]).assign(submitted_at=now).reset_index(drop=True)


def predict_next(
    trained: Trained,
    past: pd.DataFrame,
    *,
    keys: Collection[str] | None = None,
    last_runs: int = LAST_RUNS,
    now: pd.Timestamp | None = None,
) -> NextRuns:
    """The next run of every job in `past`, or of those of `keys`. past: finished runs of all jobs as read_runs has
    them; now: as next_conditions has it."""
    past = with_ends(past)
    now = end_of(past) if now is None else now
    asked = past if keys is None else past[past["group_key"].isin(keys)]
    conditions = next_conditions(asked, last_runs=last_runs, now=now)
    jobs = (
        asked.groupby("group_key", sort=True)
        .agg(n_before=("run_id", "size"), last_at=("submitted_at", "max"), usual_s=("runtime_s", "median"))
        .reset_index()
    )
    job = pd.Index(jobs["group_key"]).get_indexer(pd.Index(conditions["group_key"]))
    features = trained.features(conditions, past)
    told = trained.model.predict(features, trained.histories(conditions, past))
    predicted = pooled(told, job)
    return NextRuns(jobs, predicted, conditions.assign(job=job), features)


def shape_shares(trained: Trained, found: NextRuns) -> dict[Kind, Floats]:
    """Probability of each shape of the next run of each job, by kind: (n_jobs, k); kinds without a classifier lack."""
    job = found.conditions["job"].to_numpy(dtype=np.int64)
    n = np.bincount(job, minlength=len(found.jobs))
    shares: dict[Kind, Floats] = {}
    for kind, classifier in trained.classifiers.items():
        p = classifier.predict_proba(found.features)
        sums = np.zeros((len(found.jobs), p.shape[1]))
        np.add.at(sums, job, p)
        shares[kind] = sums / n[:, None]
    return shares


def pooled(told: Predicted, job: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Empirical:
    """One distribution a job: the mean of those of its conditions. job: (n,), 0 … n_jobs - 1."""
    values, weights = told.atoms(int(np.clip(MOST_VALUES // max(told.n, 1), LEAST_ATOMS, ATOMS)))
    history = gather_history(values.ravel(), np.repeat(job, values.shape[1]), weights.ravel())
    return Empirical(history, np.arange(history.n_groups))
