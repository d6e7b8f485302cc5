"""The protocol of an evaluation on logs that are hard: each gets figures, or one clear line."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.evaluate import evaluate_runs
from tasks.jobs.predict.params import EvaluateParams, PredictParams

QUICK = EvaluateParams(baseline_trees=5, predict=PredictParams(n_rounds=5, n_trees=5))


def log(runtime_s, groups):
    n = len(runtime_s)
    at = pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n) * 300, unit="s")).astype("datetime64[us]")
    return pd.DataFrame(
        {
            "run_id": [f"{i:06}" for i in range(n)],
            "group_key": groups,
            "submitted_at": at,
            "started_at": at,
            "ended_at": (at + pd.to_timedelta(runtime_s, unit="s")).astype("datetime64[us]"),
            "runtime_s": runtime_s,
        }
    )


def drawn(n):
    return np.exp(np.random.default_rng(0).normal(3, 0.5, n))


def test_a_log_of_one_job_is_evaluated():
    figures = evaluate_runs(log(drawn(300), ["only"] * 300), QUICK).figures
    assert figures["groups"] == 1 and figures["shapes.k.ratio"] == 1
    assert figures["predict.crps.model"] == pytest.approx(figures["predict.crps.history"], rel=0.15)


def test_jobs_without_enough_runs_have_no_labels_and_the_reason_is_told():
    figures = evaluate_runs(log(drawn(300), [f"job{i // 2}" for i in range(300)]), QUICK).figures
    assert figures["label.accuracy.ratio"] is None and "label" in figures["label.accuracy.ratio.reason"]
    assert figures["predict.ks_group.model"] is None and "20 runs" in figures["predict.ks_group.model.reason"]
    assert figures["predict.crps.model"] > 0


def test_runtimes_that_never_change_are_foretold_exactly():
    figures = evaluate_runs(log(np.full(300, 7.0), [f"job{i % 5}" for i in range(300)]), QUICK).figures
    assert figures["predict.crps.model"] < 0.2 and figures["predict.crps.history"] < 1e-9
    assert figures["predict.coverage90.model"] == 1


def test_runs_of_no_time_at_all_are_refused_in_one_line():
    with pytest.raises(BadInput, match="took 0 s"):
        evaluate_runs(log(np.zeros(300), ["job"] * 300), QUICK)


def test_some_runs_of_no_time_change_nothing_else():
    runtimes = np.where(np.arange(400) % 10 == 0, 0.0, drawn(400))
    figures = evaluate_runs(log(runtimes, [f"job{i % 4}" for i in range(400)]), QUICK).figures
    assert np.isfinite(figures["predict.crps.model"]) and np.isfinite(figures["predict.log_score.model"])


def test_the_same_log_gives_the_same_figures_in_any_order_of_jobs_names():
    runs = log(drawn(400), [f"job{i % 8}" for i in range(400)])
    one, again = (evaluate_runs(runs, QUICK).figures for _ in range(2))
    assert one == again


@pytest.mark.slow
def test_a_hundred_thousand_jobs_of_three_runs_get_an_answer():
    n = 300_000
    figures = evaluate_runs(log(drawn(n), [f"job{i % 100_000}" for i in range(n)]), QUICK).figures
    assert figures["groups"] == 100_000 and figures["predict.crps.model"] > 0
