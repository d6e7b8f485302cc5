"""What the model in use says: of given submissions, the next run of each job, one job, runs that go on."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from tasks.errors import BadInput, NotFound
from tasks.jobs.distribution import Empirical, Floats, gather_history
from tasks.jobs.normalisation import quantiles
from tasks.jobs.outlook import Bound, PredictedChance, bound, chance_beside_history, running_outlook
from tasks.jobs.params import Kind, OutlookParams
from tasks.jobs.predict.outcomes import ENDED, ENDINGS, Outcomes, outcome_features
from tasks.jobs.predict.peers import JOB, SHARED, SINCE, Histories, log_since, peers_of
from tasks.jobs.predict.preparation import fetch_runs, log_end, with_ends
from tasks.jobs.predict.trained import WORD, Trained, needed_champion
from tasks.jobs.shapes import ShapeSet
from tasks.jobs.summary import find_group, refuse_mixture
from tasks.quantities import utc_text
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version, replace_rows

LAST_RUNS = 10  # the next run is predicted as if it came under the conditions of each of these
ATOMS = 400  # quantiles that stand for the prediction under one of them: chances to 0.25 % and finer
LEAST_ATOMS = 50
MOST_VALUES = 20_000_000  # of all of them together; above it, each prediction gets fewer
MOMENT = np.timedelta64(1, "us")
GAPS = 20  # between submissions of a job, the latest, which say its rhythm
LEAST_GAPS = 5
REGULAR_RATIO = 1.5  # of the upper to the lower quartile of the gaps of a job that has a rhythm, at most


@dataclass(frozen=True)
class NextRuns:
    """Of each job, in the order of `jobs`: group_key, n_before, last_at, usual_s. predicted: (n_jobs,) distributions;
    conditions: the submissions that they were made of, with `job`, the row of `jobs`; features, known,
    by_condition: of those, the features, the histories and the distributions."""

    jobs: pd.DataFrame
    predicted: Empirical
    conditions: pd.DataFrame
    features: pd.DataFrame
    known: Histories
    by_condition: Empirical


def predict_rows(trained: Trained, rows: pd.DataFrame, past: pd.DataFrame) -> Empirical:
    """Distributions of submissions that know the runs of `past` that ended before them. rows: as make_features takes
    them; past: finished runs of all jobs as read_runs has them."""
    past = with_ends(past)
    return trained.model.predict(*trained.known(rows, past))


def end_of(past: pd.DataFrame) -> pd.Timestamp:
    """The moment just after the last submission or end of finished runs, UTC."""
    return pd.Timestamp(max(past["ended_at"].max(), past["submitted_at"].max()) + MOMENT)


def next_conditions(past: pd.DataFrame, *, now: pd.Timestamp) -> pd.DataFrame:
    """Next submissions of each job, under what was known before each of its last LAST_RUNS runs.

    Nobody knows yet what the next run will read, or under which load: its last runs show what it may be. The columns
    of past, with submitted_at of next_submissions, without what is known afterwards; as_at: when that last run was
    submitted."""
    last = past.groupby("group_key", sort=True).tail(LAST_RUNS).sort_values(["group_key", "submitted_at", "run_id"])
    submitted_at = last["group_key"].map(next_submissions(past, now))
    return last.assign(submitted_at=submitted_at, as_at=last["submitted_at"]).reset_index(drop=True)


def known_next(trained: Trained, conditions: pd.DataFrame, past: pd.DataFrame) -> tuple[pd.DataFrame, Histories]:
    """What the model knows of submissions of next_conditions, as Trained.known has it.

    Until then other jobs run, and past tells nothing of these: how long ago their last run ended is as it was."""
    features, known = trained.known(conditions, past)
    others = peers_of(conditions.assign(submitted_at=conditions["as_at"]), past, SHARED.keys() - {JOB})
    since = {SINCE.format(peers): log_since(earlier, conditions["as_at"]) for peers, earlier in others.items()}
    return features.assign(**{name: values for name, values in since.items() if name in features}), known


def next_submissions(past: pd.DataFrame, now: pd.Timestamp) -> "pd.Series[pd.Timestamp]":
    """When the next run of each job is submitted, by group_key: by its rhythm, else (or where that is over) now.

    A job has a rhythm where the quartiles of its last gaps lie close together: its next run may be a night's or a
    Monday's, which the end of the log is not."""
    last = past.sort_values("submitted_at", kind="stable").groupby("group_key").tail(GAPS + 1)
    gaps_s = last.groupby("group_key")["submitted_at"].diff().dt.total_seconds().groupby(last["group_key"])
    low, usual, high = (gaps_s.quantile(level) for level in (0.25, 0.5, 0.75))
    has_rhythm = (gaps_s.count() >= LEAST_GAPS) & (high <= REGULAR_RATIO * low)
    due: pd.Series[pd.Timestamp] = last.groupby("group_key")["submitted_at"].max() + pd.to_timedelta(usual, unit="s")
    return due.where(has_rhythm & (due > now), now)


def predict_next(
    trained: Trained,
    past: pd.DataFrame,
    *,
    keys: Collection[str] | None = None,
    now: pd.Timestamp | None = None,
) -> NextRuns:
    """The next run of every job in `past`, or of those of `keys`. past: finished runs of all jobs as read_runs has
    them; now: as next_conditions has it."""
    past = with_ends(past)
    now = end_of(past) if now is None else now
    job_runs = past if keys is None else past[past["group_key"].isin(keys)]
    conditions = next_conditions(job_runs, now=now)
    jobs = (
        job_runs.groupby("group_key", sort=True)
        .agg(n_before=("run_id", "size"), last_at=("submitted_at", "max"), usual_s=("runtime_s", "median"))
        .reset_index()
    )
    job = pd.Index(jobs["group_key"]).get_indexer(pd.Index(conditions["group_key"]))
    features, known = known_next(trained, conditions, past)
    predicted = trained.model.predict(features, known)
    return NextRuns(jobs, pooled(predicted, job), conditions.assign(job=job), features, known, predicted)


def shape_shares(trained: Trained, next_runs: NextRuns) -> dict[Kind, Floats]:
    """Probability of each shape of the next run of each job, by kind: (n_jobs, k); kinds without a classifier lack."""
    job = next_runs.conditions["job"].to_numpy()
    by_kind = {kind: pd.DataFrame(one.predict_proba(next_runs.features)) for kind, one in trained.classifiers.items()}
    return {kind: shares.groupby(job).mean().to_numpy() for kind, shares in by_kind.items()}


def pooled(predicted: Empirical, job: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Empirical:
    """One distribution a job: the mean of those of its conditions, as many values each. job: (n,), 0 … n_jobs - 1."""
    values, _ = predicted.atoms(int(np.clip(MOST_VALUES // max(predicted.n, 1), LEAST_ATOMS, ATOMS)))
    return gather_history(values.ravel(), np.repeat(job, values.shape[1]))


LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
FAR_OUT = 2.0  # times the usual median


class Predicted(TypedDict):
    """What stands in jobs.predictions: the model and files it rests on, for which moment (ISO, UTC), how many jobs."""

    model_id: str
    data_version: str
    predicted_at: str
    n_jobs: int


def predict_source(warehouse: Warehouse, source: str) -> Predicted:
    """Predict the next run of every job of a source by its champion, and write jobs.predictions; twice changes nothing.

    Raises NotFound if the source has no runs or no model yet, BadInput if the model's files are broken."""
    card, trained = needed_champion(warehouse, source)
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        version = data_version(connection, WORD, source)
        past, ended = fetch_runs(connection, source), fetch_runs(connection, source, statuses=ENDED)
    if past.empty:
        raise BadInput(f"source {source!r}", "no finished run with a runtime", "runs that have ended")
    at = end_of(with_ends(past))
    next_runs = predict_next(trained, past, now=at)
    rows = table_of_next(trained, next_runs, ended)
    about = {"source": source, "model_id": card.model_id, "predicted_at": at, "data_version": version}
    replace_rows(warehouse, "jobs", about, {"predictions": rows})
    moment = utc_text(at.to_pydatetime())
    return Predicted(model_id=card.model_id, data_version=version, predicted_at=moment, n_jobs=len(rows))


def table_of_next(trained: Trained, next_runs: NextRuns, ended: pd.DataFrame) -> pd.DataFrame:
    """One row a job: group_key, n_before, last_at, usual_s and what was predicted, as jobs.predictions names it.

    ended: runs of all jobs that ended, however they did."""
    predicted, usual_s = next_runs.predicted, next_runs.jobs["usual_s"].to_numpy(dtype=float)
    times = predicted.quantiles(LEVELS)
    quantiles = {f"p{round(100 * level):02d}_s": times[:, place] for place, level in enumerate(LEVELS)}
    table = next_runs.jobs.assign(
        **quantiles,
        exceeds_2x_share=np.where(usual_s > 0, 1 - predicted.cdf_below(FAR_OUT * usual_s), np.nan),
        expected_excess_s=predicted.mean_above(usual_s),
        shape_ratio=pd.array([pd.NA] * predicted.n, dtype="Int32"),
        shape_delta=pd.array([pd.NA] * predicted.n, dtype="Int32"),
    )
    for kind, shares in shape_shares(trained, next_runs).items():
        table[f"shape_{kind}"] = pd.array(shares.argmax(axis=1), dtype="Int32")
    return (
        table.assign(**dict.fromkeys(ENDINGS, np.nan))
        if trained.outcomes is None
        else table.join(endings_of(trained.outcomes, next_runs, outcome_features(next_runs.conditions, ended)))
    )


def endings_of(outcomes: Outcomes, next_runs: NextRuns, features: pd.DataFrame) -> pd.DataFrame:
    """ENDINGS of the next run of each job, on 0 … n_jobs - 1: the mean over its conditions that have a time limit.

    features: of next_runs.conditions, as outcome_features makes them."""
    return outcomes.endings(features, next_runs.by_condition).groupby(next_runs.conditions["job"].to_numpy()).mean()


def read_predictions(
    warehouse: Warehouse, source: str, *, min_before: int = 0, limit: int | None = None
) -> pd.DataFrame:
    """Rows of jobs.predictions of jobs with enough finished runs, those most likely to take twice their usual time
    first; none if nothing was predicted."""
    return fetch(
        warehouse,
        """SELECT * EXCLUDE (source) FROM jobs.predictions WHERE source = $source AND n_before >= $min_before
        ORDER BY exceeds_2x_share DESC NULLS LAST, expected_excess_s DESC, group_key LIMIT $limit""",
        {"source": source, "min_before": min_before, "limit": limit},
    )


def are_fresh(warehouse: Warehouse, source: str, model_id: str) -> bool:
    """Whether jobs.predictions holds what this model says of the files that the source has now."""
    with reading(warehouse) as connection:
        made = connection.execute(
            "SELECT DISTINCT model_id, data_version FROM jobs.predictions WHERE source = $source", {"source": source}
        ).fetchall()
        return made == [(model_id, data_version(connection, WORD, source))]


QUARTILES = (0.25, 0.75, 0.95)


@dataclass(frozen=True)
class Limit:
    """The time that the next run stays under with probability `level`: as predicted, and as its own runs bound it."""

    level: float
    predicted_s: float
    own: Bound


@dataclass(frozen=True)
class ShapeChance:
    """Probability of one shape. p25, p75, p95: of that shape, as a ratio to the median in the history, or seconds
    beyond it; is_open: p75 lies among the outliers, so it is at least that."""

    shape: int
    share: float
    p25: float
    p75: float
    p95: float
    is_open: bool


@dataclass(frozen=True)
class Ending:
    """The chances that a run completes, is stopped at its time limit, and is stopped before: they sum to 1."""

    completes: float
    at_limit: float
    before_limit: float


@dataclass(frozen=True)
class JobOutlook:
    """usual_s: median of the n_before finished runs; predicted_at: the end of the log, UTC; shapes: by kind, the most
    probable first. ending: None where no limit says it. chances: of taking longer than given times, of all runs where
    there is an ending, else of those that complete."""

    group_key: str
    model_id: str
    predicted_at: pd.Timestamp
    n_before: int
    last_at: pd.Timestamp
    usual_s: float
    limits: list[Limit]
    ending: Ending | None
    chances: list[PredictedChance]
    shapes: dict[Kind, list[ShapeChance]]


def job_outlook(
    warehouse: Warehouse, source: str, job: str, params: OutlookParams, *, times_s: tuple[float, ...] = ()
) -> JobOutlook:
    """The next run of one job, named by its key or a unique part of it; times_s: ask for the chance to exceed each.

    Raises NotFound if no or several jobs fit, the job has no finished run, or the source has no model; BadSetting if
    a time is none."""
    card, trained = needed_champion(warehouse, source)
    group_key = find_group(warehouse, source, job)
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        past, ended = fetch_runs(connection, source), fetch_runs(connection, source, statuses=ENDED)
    job_runs = past[past["group_key"] == group_key]
    if job_runs.empty:
        raise NotFound(f"job {group_key!r} of source {source!r} has no finished run with a runtime yet")
    now = end_of(with_ends(past))
    next_runs = predict_next(trained, past, keys=[group_key], now=now)
    runtimes_s = past_s = job_runs["runtime_s"].to_numpy(dtype=float)
    levels = sorted(set(params.levels))
    ending, outcomes = None, trained.outcomes
    if outcomes is not None:
        features = outcome_features(next_runs.conditions, ended)
        shares = endings_of(outcomes, next_runs, features).iloc[0]
        if shares.notna().all():
            ending = Ending(*map(float, shares))
            past_s = ended.loc[ended["group_key"] == group_key, "runtime_s"].to_numpy(dtype=float)

    def chance_of(time_s: float) -> Any:
        if outcomes is None or ending is None:
            return 1 - next_runs.predicted.cdf(time_s)[0]
        goes_on = outcomes.goes_on(features, next_runs.by_condition, np.full((len(features), 1), time_s))
        return np.clip(np.nanmean(goes_on), 0.0, 1.0)

    return JobOutlook(
        group_key=group_key,
        model_id=card.model_id,
        predicted_at=now,
        n_before=len(job_runs),
        last_at=next_runs.jobs["last_at"].iloc[0],
        usual_s=float(next_runs.jobs["usual_s"].iloc[0]),
        limits=[
            Limit(level, float(next_runs.predicted.quantile(level)[0]), bound(runtimes_s, level)) for level in levels
        ],
        ending=ending,
        chances=[chance_beside_history(time_s, chance_of, past_s) for time_s in times_s],
        shapes={
            kind: _shape_chances(trained.shapes[kind], p[0]) for kind, p in shape_shares(trained, next_runs).items()
        },
    )


def _shape_chances(shapes: ShapeSet, shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[ShapeChance]:
    """shares: (k,)."""
    known = quantiles(shapes.centres, shapes.bins, QUARTILES).tolist()
    chances = []
    for shape in np.argsort(-shares, kind="stable").tolist():
        p25, p75, p95 = known[shape]
        chances.append(ShapeChance(shape, float(shares[shape]), p25, p75, p95, is_open=p75 >= shapes.bins.high))
    return chances


RUNNING = ("running",)
LEAST_LEFT = 0.01  # chance to go on so long, below which the tail of the runtimes speaks alone


@dataclass(frozen=True)
class GoingOn:
    """runs: of running_outlook, the ones that run longest against what was expected first, with is_past_limit: longer
    than the log's runs are let run; as_of: UTC; model_id."""

    model_id: str
    as_of: pd.Timestamp
    runs: pd.DataFrame


def runs_going_on(
    warehouse: Warehouse, source: str, params: OutlookParams, *, within_s: float | None = None
) -> GoingOn:
    """What to expect of the runs that have started and not ended when the log ends.

    The log says nothing of what came after its last moment, so each run is as old as it was then. It is done when it
    ends by itself or, where the log's runs keep their limits, by its limit. within_s: the time
    that each should take at most, for chance_in_time: that it has ended by then, by itself or by its limit. Raises
    NotFound if the source has no model, or no runs."""
    card, trained = needed_champion(warehouse, source)
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        as_of = log_end(connection, source)
        running = fetch_runs(connection, source, statuses=RUNNING)
        past, ended = fetch_runs(connection, source), fetch_runs(connection, source, statuses=ENDED)
    running = running[running["started_at"].notna()].reset_index(drop=True)
    deadlines = None if within_s is None else running["started_at"] + pd.to_timedelta(within_s, unit="s")
    predicted = predict_rows(trained, running, past)
    table = running_outlook(running, predicted, as_of, params, deadlines_at=deadlines)
    if within_s is not None and trained.outcomes is not None and len(table):
        times_s = np.column_stack([table["elapsed_s"], np.full(len(table), within_s)])
        goes_on = trained.outcomes.goes_on(outcome_features(running, ended), predicted, times_s)
        is_known = (goes_on[:, 0] > LEAST_LEFT) & (times_s[:, 0] < within_s)
        in_time = 1 - goes_on[:, 1] / np.where(is_known, goes_on[:, 0], 1.0)
        table["chance_in_time"] = np.where(is_known, in_time, table["chance_in_time"])
    limit_s = running["requested_runtime_s"].to_numpy(dtype=float) * (trained.model.grace or np.nan)
    to_limit_s = limit_s - table["elapsed_s"].to_numpy(dtype=float)
    for name in [name for name in table if str(name).startswith("left_")]:
        table[name] = np.where(to_limit_s > 0, np.fmin(table[name], to_limit_s), table[name])
    table["is_past_limit"] = to_limit_s <= 0
    return GoingOn(card.model_id, as_of, table.sort_values(["chance_so_long", "run_id"]).reset_index(drop=True))
