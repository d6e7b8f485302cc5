"""Why one run is expected to take long, and why its job varies, by the model in use: of a past run or the next."""

import math
import shlex
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from tasks.errors import NotFound
from tasks.jobs.explain.contributions import (
    MIN_RUNS,
    Contributions,
    against_usual,
    runtime_parts,
    variable_parts,
)
from tasks.jobs.explain.params import ExplainParams
from tasks.jobs.explain.reasons import (
    Direction,
    Explanation,
    Typical,
    explain_run,
    typical_values,
)
from tasks.jobs.outlook.exceeding import chances_to_exceed
from tasks.jobs.predict.champions import needed_champion
from tasks.jobs.predict.log_end import log_end
from tasks.jobs.predict.predicting import end_of, next_conditions, predict_next
from tasks.jobs.predict.preparation import with_ends
from tasks.jobs.predict.rows import fetch_runs, read_runs
from tasks.jobs.predict.trained import Trained
from tasks.jobs.shape_params import Kind
from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard

MOST_TYPICAL = 500  # jobs that say what is usual for all runs, one run each


@dataclass(frozen=True)
class Explainer:
    """The champion of a source and finished runs, all or those of one job, loaded once. overall: usual value of each
    feature over jobs; now: the end of the whole log."""

    source: str
    card: ModelCard
    trained: Trained
    runs: pd.DataFrame
    overall: pd.Series
    now: pd.Timestamp


def load_explainer(warehouse: Warehouse, source: str) -> Explainer:
    """What explanations of any run of a source need. Raises NotFound if it has no runs or no trained model."""
    card, trained = needed_champion(warehouse, source)
    runs = with_ends(read_runs(warehouse, source))
    return Explainer(source, card, trained, runs, _overall(trained, runs), end_of(runs))


def load_job_explainer(warehouse: Warehouse, source: str, group_key: str) -> Explainer:
    """The same for the runs of one job: only these are read, once `jobs-explain` has stored what is usual for all."""
    card, trained = needed_champion(warehouse, source)
    overall = _stored_overall(warehouse, source, card.model_id)
    if overall is None:
        return load_explainer(warehouse, source)
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        runs = with_ends(fetch_runs(connection, source, group_key=group_key))
        now = log_end(connection, source)
    return Explainer(source, card, trained, runs, overall.reindex(trained.model.columns), now)


def _overall(trained: Trained, runs: pd.DataFrame) -> pd.Series:
    """The usual value of each feature: the median over the last runs of the jobs."""
    last = runs.groupby("group_key", sort=True).tail(1).iloc[:MOST_TYPICAL]
    past = runs[pd.Index(last["group_key"]).get_indexer(pd.Index(runs["group_key"])) >= 0]
    return trained.features(last, past).median()


def _stored_overall(warehouse: Warehouse, source: str, model_id: str) -> pd.Series | None:
    rows = fetch(
        warehouse,
        "SELECT feature, value FROM jobs.usual_values WHERE source = $source AND model_id = $model_id",
        {"source": source, "model_id": model_id},
    )
    return None if rows.empty else rows.set_index("feature")["value"].astype(float)


@dataclass(frozen=True)
class RunReasons:
    """Why one run, run_id None for the next one of its job, is expected to take as long as it is.

    n_conditions: submissions that it is the mean over, several for the next run.
    usual_s: median of the job's earlier runs, NaN without one; expected_s: by the model, from what was known at
    submission; n_usual: earlier runs that it is compared with, 0 where all runs are. runtime: factors on the expected
    runtime, against the job; variation: log-odds of the variable ones of the k shapes, against all jobs, None without
    a classifier; chance: probability of these. runtime_s: None for a run that has not ended."""

    source: str
    model_id: str
    run_id: str | None
    group_key: str
    submitted_at: pd.Timestamp
    runtime_s: float | None
    usual_s: float
    expected_s: float
    n_usual: int
    n_conditions: int
    runtime: Explanation
    variation: Explanation | None
    chance: float | None
    k: int


def explain_run_of(
    warehouse: Warehouse, source: str, run_id: str, params: ExplainParams, *, direction: Direction = "both"
) -> RunReasons:
    """The reasons of one run of a source, whatever became of it, also one that still runs or waits.

    Raises NotFound for a source without a model, or a run that is not there or has no submission and no start."""
    asked = {"source": source, "run_id": run_id}
    found = fetch(
        warehouse, "SELECT group_key, status FROM jobs.runs WHERE source = $source AND run_id = $run_id", asked
    )
    if found.empty:
        raise NotFound(_no_run(source, run_id))
    key, status = (str(found[name].iloc[0]) for name in ("group_key", "status"))
    explainer = load_job_explainer(warehouse, source, key)
    if (explainer.runs["run_id"] == run_id).any():
        return explain_past_run(explainer, run_id, params, direction=direction)
    rows = read_runs(warehouse, source, statuses=(status,), with_what_ifs=True, group_key=key)
    return _explained_run(explainer, rows[(rows["run_id"] == run_id).to_numpy()], run_id, params, direction)


def explain_next_of(
    warehouse: Warehouse, source: str, group_key: str, params: ExplainParams, *, direction: Direction = "both"
) -> RunReasons:
    """The reasons of the next run of a job. Raises NotFound for a source without a model, or a job without runs."""
    explainer = load_job_explainer(warehouse, source, group_key)
    return explain_next_run(explainer, group_key, params, direction=direction)


def explain_past_run(
    explainer: Explainer, run_id: str, params: ExplainParams, *, direction: Direction = "both"
) -> RunReasons:
    """The reasons of one finished run, from what was known when it was submitted.

    It is compared with the runs of its job that had ended by then. Raises NotFound for a run that is not there."""
    rows = explainer.runs[(explainer.runs["run_id"] == run_id).to_numpy()]
    return _explained_run(explainer, rows, run_id, params, direction)


def _explained_run(
    explainer: Explainer, rows: pd.DataFrame, run_id: str, params: ExplainParams, direction: Direction
) -> RunReasons:
    if rows.empty:
        raise NotFound(_no_run(explainer.source, run_id))
    runs, row = explainer.runs, rows.iloc[[0]]
    job = runs[(runs["group_key"] == row["group_key"].iloc[0]).to_numpy()]
    usual = job[(job["ended_at"] < row["submitted_at"].iloc[0]).to_numpy()].tail(params.usual_runs)
    found = _explained(explainer, row, job, usual, params, direction)
    runtime_s = float(row["runtime_s"].iloc[0])
    return replace(found, run_id=run_id, runtime_s=None if math.isnan(runtime_s) else runtime_s)


def explain_next_run(
    explainer: Explainer, group_key: str, params: ExplainParams, *, direction: Direction = "both"
) -> RunReasons:
    """The reasons of the next run of a job, under what was known before each of its last runs, on average.

    Raises NotFound for a job without finished runs."""
    job = explainer.runs[(explainer.runs["group_key"] == group_key).to_numpy()]
    if job.empty:
        raise NotFound(f"job {group_key!r} of source {explainer.source!r} has no finished run to explain")
    rows = next_conditions(job, now=explainer.now)
    return _explained(explainer, rows, job, job.tail(params.usual_runs), params, direction)


class _Asked(NamedTuple):
    """Which reasons are wanted, as explain_run takes it."""

    direction: Direction
    most: int
    least: float


def _explained(
    explainer: Explainer,
    rows: pd.DataFrame,
    job: pd.DataFrame,
    usual: pd.DataFrame,
    params: ExplainParams,
    direction: Direction,
) -> RunReasons:
    """Reasons for the mean of `rows`, one job's submissions, against its usual runs."""
    trained, key = explainer.trained, str(rows["group_key"].iloc[0])
    features = trained.features(pd.concat([usual, rows], ignore_index=True), job.reset_index(drop=True))
    asked, known = features.iloc[len(usual) :], features.iloc[: len(usual)]
    n_usual = len(usual) if len(usual) >= MIN_RUNS else 0
    within = Typical(typical_values(known, np.full(len(known), key)).by_job, explainer.overall, is_within_job=True)
    among_jobs = Typical(within.by_job.iloc[:0], explainer.overall)
    shown = asked.median().to_frame().T
    parts = _mean(runtime_parts(trained, asked))
    if n_usual:
        parts = against_usual(parts, [key], runtime_parts(trained, known), np.full(n_usual, key))
    asked_for = _Asked(direction, params.most_reasons, math.log(params.least_factor))
    runtime = explain_run(parts, 0, shown, key, within, **asked_for._asdict())
    variation = _variation(trained, asked, shown, key, among_jobs, params.kind, asked_for)
    base_s = trained.model.location.base_log_s(asked)
    is_new = "n_before" not in asked or not (asked["n_before"] > 0).any()
    return RunReasons(
        source=explainer.source,
        model_id=explainer.card.model_id,
        run_id=None,
        group_key=key,
        submitted_at=rows["submitted_at"].iloc[-1],
        runtime_s=None,
        usual_s=math.nan if is_new else float(np.exp(base_s.mean())),
        expected_s=float(np.exp(trained.model.expected_log_s(asked).mean())),
        n_usual=n_usual,
        n_conditions=len(asked),
        runtime=runtime,
        variation=variation,
        k=len(trained.shapes[params.kind].centres),
        chance=None if variation is None else 1 / (1 + math.exp(-variation.prediction)),
    )


def _variation(
    trained: Trained,
    asked: pd.DataFrame,
    shown: pd.DataFrame,
    key: str,
    typical: Typical,
    kind: Kind,
    asked_for: "_Asked",
) -> Explanation | None:
    classifier = trained.classifiers.get(kind)
    parts = variable_parts(classifier, asked) if classifier else None
    if parts is None:
        return None
    return explain_run(_mean(parts), 0, shown, key, typical, scale="odds", **asked_for._asdict())


def _mean(parts: Contributions) -> Contributions:
    """One row: the mean over all of one score, still additive."""
    added = parts.single.mean(axis=0)[None, :, None]
    return Contributions(added, parts.base.mean(axis=0, keepdims=True), parts.features)


def _no_run(source: str, run_id: str) -> str:
    command = shlex.join(
        ["whorl", "query", "SELECT run_id, group_key, runtime_s FROM jobs.runs ORDER BY runtime_s DESC"]
    )
    return f"run {run_id!r}: source {source!r} has no run of this id; see the ids with {command}"


def longest_runs(explainer: Explainer, params: ExplainParams) -> list[str]:
    """Ids of the runs of the last days of the log that took the most times their job's usual time, longest first.

    Usual: the median of the runs of the job that had ended before, at least min_support of them and above 0 s."""
    runs = explainer.runs
    is_recent = runs["ended_at"] > runs["ended_at"].max() - pd.Timedelta(days=params.look_back_days)
    recent = runs[is_recent.to_numpy()]
    past = runs[runs["group_key"].isin(recent["group_key"].unique())]
    features = explainer.trained.features(recent, past)
    usual_s = np.exp(explainer.trained.model.location.base_log_s(features))
    n_before = features["n_before"].to_numpy() if "n_before" in features else np.full(len(recent), np.inf)
    times = pd.Series(recent["runtime_s"].to_numpy() / usual_s, index=recent["run_id"].to_numpy())
    times = times[(n_before >= params.min_support) & (times > 1).to_numpy()]
    return [str(key) for key in times.sort_values(ascending=False, kind="stable").index[: params.n_longest]]


def riskiest_jobs(explainer: Explainer, params: ExplainParams) -> list[str]:
    """Keys of the jobs whose next run most probably takes more than risk_ratio times the usual time, first the most.

    Jobs with fewer than min_support runs, or a usual time of 0 s, are left out."""
    found = predict_next(explainer.trained, explainer.runs)
    jobs = found.jobs
    chance = chances_to_exceed(found.predicted, params.risk_ratio * jobs["usual_s"].to_numpy(dtype=float))
    jobs = jobs.assign(chance=chance)[(jobs["n_before"] >= params.min_support) & (jobs["usual_s"] > 0)]
    jobs = jobs.sort_values(["chance", "group_key"], ascending=[False, True])
    return [str(key) for key in jobs["group_key"].iloc[: params.n_riskiest]]


def explain_chosen(explainer: Explainer, params: ExplainParams) -> list[RunReasons]:
    """The reasons of the longest recent runs, then of the next runs of the riskiest jobs."""
    past = [explain_past_run(explainer, run_id, params) for run_id in longest_runs(explainer, params)]
    return past + [explain_next_run(explainer, key, params) for key in riskiest_jobs(explainer, params)]
