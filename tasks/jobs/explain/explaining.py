"""Why one run is expected to take long, and why its job varies, by the model in use: of a past run or the next.

What is said to be expected is the median of what `whorl jobs predict` predicts; the reasons are of the mean of its
logarithm, against the usual runs of the same job."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import NotFound
from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import MIN_RUNS, against_usual, runtime_parts, variable_parts
from tasks.jobs.explain.params import ExplainParams
from tasks.jobs.explain.reasons import Explanation, Typical, explain_run, typical_values
from tasks.jobs.outlook import chances_to_exceed
from tasks.jobs.predict.earlier import earlier_runs
from tasks.jobs.predict.predicting import predict_next
from tasks.jobs.predict.preparation import with_ends
from tasks.jobs.predict.rows import read_runs
from tasks.jobs.predict.trained import Trained, needed_champion
from tasks.jobs.shape_params import Kind
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

KIND: Kind = "ratio"  # the shapes that say how variable a job is
USUAL_RUNS = 20  # runs of the same job that a run is compared with, the latest of them
MIN_SUPPORT = 3  # earlier runs that a job needs to have a usual time
RISK_RATIO = 2.0  # long: more than this many times the job's usual time
MOST_TYPICAL = 500  # jobs that say what is usual for all runs, one run each


@dataclass(frozen=True)
class Explainer:
    """The champion of a source and its finished runs, loaded once. overall: usual value of each feature over jobs."""

    source: str
    model_id: str
    trained: Trained
    runs: pd.DataFrame
    overall: pd.Series


@dataclass(frozen=True)
class RunReasons:
    """Why one run, run_id None for the next one of its job, is expected to take as long as it is.

    n_conditions: submissions that it is the mean over, several for the next run.
    usual_s: median of the job's earlier runs, NaN without one; expected_s: the median that is predicted from what was
    known at submission; n_usual: earlier runs that it is compared with, 0 where all runs are. runtime: factors on the
    expected runtime, against the job; variation: log-odds of the variable ones of the k shapes, against all jobs, None
    without a classifier; chance: probability of these. runtime_s: None for a run that has not ended."""

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


def load_explainer(warehouse: Warehouse, source: str) -> Explainer:
    """What explanations of any run of a source need. Raises NotFound if it has no runs or no trained model."""
    card, trained = needed_champion(warehouse, source)
    runs = with_ends(read_runs(warehouse, source))
    last = runs.groupby("group_key", sort=True).tail(1).iloc[:MOST_TYPICAL]
    return Explainer(source, card.model_id, trained, runs, trained.features(last, runs).median())


def explain_run_of(warehouse: Warehouse, source: str, run_id: str, params: ExplainParams) -> RunReasons:
    """The reasons of one run of a source, whatever became of it, also one that still runs or waits.

    Raises NotFound for a source without a model, or a run that is not there or has no submission and no start."""
    sql = "SELECT group_key, status FROM jobs.runs WHERE source = $source AND run_id = $run_id"
    found = fetch(warehouse, sql, {"source": source, "run_id": run_id})
    for key, status in found.itertuples(index=False):
        explainer = load_explainer(warehouse, source)
        rows = explainer.runs
        if not (rows["run_id"] == run_id).any():
            rows = read_runs(warehouse, source, statuses=(status,), with_what_ifs=True, group_key=key)
        rows = rows[(rows["run_id"] == run_id).to_numpy()]
        if len(rows):
            return explain_past(explainer, rows, params)[0]
    ids = "SELECT run_id, group_key, runtime_s FROM jobs.runs ORDER BY runtime_s DESC"
    see = f"see the ids with {shlex.join(['whorl', 'query', ids])}"
    raise NotFound(f"run {run_id!r}: source {source!r} has no run of this id; {see}")


def explain_next_of(warehouse: Warehouse, source: str, group_key: str, params: ExplainParams) -> RunReasons:
    """The reasons of the next run of a job. Raises NotFound for a source without a model, or a job without runs."""
    explainer = load_explainer(warehouse, source)
    if not (explainer.runs["group_key"] == group_key).any():
        raise NotFound(f"job {group_key!r} of source {source!r} has no finished run to explain")
    return explain_next(explainer, [group_key], params)[0]


def explain_past(explainer: Explainer, rows: pd.DataFrame, params: ExplainParams) -> list[RunReasons]:
    """The reasons of submissions, from what was known then; each is compared with the runs of its job that had ended.

    rows: runs of read_runs, of which those without a runtime have not ended."""
    trained, runs = explainer.trained, explainer.runs
    features, known = trained.features(rows, runs), trained.histories(rows, runs)
    expected_s, usual_s = trained.model.predict(features, known).quantile(0.5), usual_times(rows, runs)[0]
    return _explained(explainer, rows, np.arange(len(rows)), features, expected_s, usual_s, params, is_past=True)


def explain_next(explainer: Explainer, keys: Sequence[str], params: ExplainParams) -> list[RunReasons]:
    """The reasons of the next runs of jobs with finished runs, in order of their keys.

    Each is the mean over what was known before each of the last runs of its job."""
    found = predict_next(explainer.trained, explainer.runs, keys=keys)
    expected_s, usual_s = found.predicted.quantile(0.5), found.jobs["usual_s"].to_numpy(dtype=float)
    rows, job = found.conditions, found.conditions["job"].to_numpy()
    return _explained(explainer, rows, job, found.features, expected_s, usual_s, params, is_past=False)


def explain_chosen(explainer: Explainer, params: ExplainParams) -> list[RunReasons]:
    """The reasons of the longest runs of the last days, then of the next runs of the jobs most at risk."""
    runs, longest, keys = explainer.runs, longest_runs(explainer, params), riskiest_jobs(explainer, params)
    place = pd.Index(runs["run_id"]).get_indexer(pd.Index(longest))
    past = explain_past(explainer, runs.iloc[place], params) if longest else []
    following = {one.group_key: one for one in explain_next(explainer, keys, params)} if keys else {}
    return past + [following[key] for key in keys]


def longest_runs(explainer: Explainer, params: ExplainParams) -> list[str]:
    """Ids of the runs of the last days of the log that took the most times their job's usual time, longest first.

    Usual: the median of the runs of the job that had ended before, at least MIN_SUPPORT of them and above 0 s."""
    runs = explainer.runs
    recent = runs[(runs["ended_at"] > runs["ended_at"].max() - pd.Timedelta(days=params.look_back_days)).to_numpy()]
    usual_s, n_before = usual_times(recent, runs)
    times = pd.Series(recent["runtime_s"].to_numpy() / usual_s, index=recent["run_id"].to_numpy())
    times = times[(n_before >= MIN_SUPPORT) & (usual_s > 0) & (times > 1).to_numpy()]
    return [str(key) for key in times.sort_values(ascending=False, kind="stable").index[: params.n_longest]]


def riskiest_jobs(explainer: Explainer, params: ExplainParams) -> list[str]:
    """Keys of the jobs whose next run most probably takes more than RISK_RATIO times the usual time, first the most.

    Jobs with fewer than MIN_SUPPORT runs, or a usual time of 0 s, are left out."""
    found = predict_next(explainer.trained, explainer.runs)
    jobs = found.jobs
    chance = chances_to_exceed(found.predicted, RISK_RATIO * jobs["usual_s"].to_numpy(dtype=float))
    jobs = jobs.assign(chance=chance)[(jobs["n_before"] >= MIN_SUPPORT) & (jobs["usual_s"] > 0)]
    jobs = jobs.sort_values(["chance", "group_key"], ascending=[False, True])
    return [str(key) for key in jobs["group_key"].iloc[: params.n_riskiest]]


def usual_times(rows: pd.DataFrame, runs: pd.DataFrame) -> tuple[Floats, NDArray[np.int64]]:
    """Median of the runs of the job that had ended before each row, in seconds, NaN without one, and their number."""
    earlier = earlier_runs(rows, runs)
    return earlier.quantile(earlier.values("runtime_s"), 0.5, window=max(len(runs), 1)), earlier.n


def _explained(
    explainer: Explainer,
    rows: pd.DataFrame,
    of: NDArray[np.int64],
    features: pd.DataFrame,
    expected_s: Floats,
    usual_s: Floats,
    params: ExplainParams,
    *,
    is_past: bool,
) -> list[RunReasons]:
    """Reasons for the mean of the submissions of each of m questions, against the usual runs of their job.

    rows: n submissions; of: (n,) the question of each; features: (n, p); expected_s, usual_s: (m,); is_past: the rows
    are runs, each a question of its own."""
    trained, runs = explainer.trained, explainer.runs
    earlier = earlier_runs(rows, runs)
    last = [int(np.flatnonzero(of == one)[-1]) for one in range(len(expected_s))]
    n_usual = np.minimum(earlier.n[last], USUAL_RUNS)
    n_usual = np.where(n_usual < MIN_RUNS, 0, n_usual)
    ends = np.asarray(earlier.last)[last] + 1
    stretches = [earlier.order[end - n : end] for end, n in zip(ends, n_usual, strict=True)]
    usual = runs.iloc[np.concatenate([*stretches, np.zeros(0, dtype=np.int64)]).astype(np.int64)]
    usual_features = trained.features(usual, runs)
    usual_parts = runtime_parts(trained.model, usual_features, trained.histories(usual, runs))
    parts = runtime_parts(trained.model, features, trained.histories(rows, runs))
    classifier, first, found = trained.classifiers.get(KIND), np.cumsum(n_usual) - n_usual, []
    variable = variable_parts(classifier, features) if classifier else None
    for one, n in enumerate(n_usual):
        is_this, row = of == one, rows.iloc[last[one]]
        key, known = str(row["group_key"]), usual_features.iloc[first[one] : first[one] + n]
        within = Typical(typical_values(known, np.full(n, key)).by_job, explainer.overall, is_within_job=True)
        shown = features[is_this].median().to_frame().T
        beside = against_usual(parts.rows(is_this).mean(), usual_parts, [first[one]], [n])
        variation = None
        if variable is not None:
            among_jobs, mean = Typical(within.by_job.iloc[:0], explainer.overall), variable.rows(is_this).mean()
            variation = explain_run(mean, shown, key, among_jobs, scale="odds", most=params.most_reasons)
        found.append(
            RunReasons(
                source=explainer.source,
                model_id=explainer.model_id,
                run_id=str(row["run_id"]) if is_past else None,
                group_key=key,
                submitted_at=row["submitted_at"],
                runtime_s=float(row["runtime_s"]) if is_past and not math.isnan(row["runtime_s"]) else None,
                usual_s=float(usual_s[one]),
                expected_s=float(expected_s[one]),
                n_usual=int(n),
                n_conditions=int(is_this.sum()),
                runtime=explain_run(beside, shown, key, within, most=params.most_reasons),
                variation=variation,
                chance=None if variation is None else 1 / (1 + math.exp(-variation.prediction)),
                k=len(trained.shapes[KIND].centres),
            )
        )
    return found
