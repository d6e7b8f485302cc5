"""Which runs are worth explaining: the longest of the last days, and the next ones of the jobs most at risk."""

import numpy as np
import pandas as pd

from tasks.jobs.explain.explainer import Explainer
from tasks.jobs.explain.explaining import RunReasons, explain_next_run, explain_past_run
from tasks.jobs.explain.params import ExplainParams
from tasks.jobs.outlook.exceeding import chances_to_exceed
from tasks.jobs.predict.predicting import predict_next


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
