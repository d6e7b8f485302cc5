"""The protocol of an evaluation on logs that are hard: each gets figures, or one clear line."""

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.jobs.evaluate import evaluate_logs, evaluate_runs
from tasks.jobs.intake import Intake
from tasks.jobs.params import EvaluateParams, GroupParams, PredictParams, ReadParams

QUICK = EvaluateParams(baseline_trees=5, predict=PredictParams(n_rounds=5, n_trees=5))


def drawn(n):
    return np.exp(np.random.default_rng(0).normal(3, 0.5, n))


def test_a_log_of_one_job_is_evaluated(log_of):
    figures = evaluate_runs(log_of(drawn(300), ["only"] * 300), QUICK).figures
    assert figures["groups"] == 1 and figures["shapes.k.ratio"] == 1
    assert figures["predict.crps.model"] == pytest.approx(figures["predict.crps.history"], rel=0.15)


def test_jobs_without_enough_runs_have_no_labels_and_the_reason_is_told(log_of):
    figures = evaluate_runs(log_of(drawn(300), [f"job{i // 2}" for i in range(300)]), QUICK).figures
    assert figures["label.accuracy.ratio"] is None and "label" in figures["label.accuracy.ratio.reason"]
    assert figures["predict.ks_group.model"] is None and "20 runs" in figures["predict.ks_group.model.reason"]
    assert figures["predict.crps.model"] > 0


def test_runtimes_that_never_change_are_foretold_exactly(log_of):
    figures = evaluate_runs(log_of(np.full(300, 7.0), [f"job{i % 5}" for i in range(300)]), QUICK).figures
    assert figures["predict.crps.model"] < 0.2 and figures["predict.crps.history"] < 1e-9
    assert figures["predict.coverage90.model"] == 1


def test_jobs_that_mostly_take_no_time_are_predicted_without_shapes_of_ratios(log_of):
    runtime_s = np.where(np.arange(300) % 3 == 0, drawn(300), 0.0)
    found = evaluate_runs(log_of(runtime_s, [f"job{i % 4}" for i in range(300)]), QUICK)
    assert "ratio" not in found.prepared.shapes and "global" not in found.runtimes.scored
    assert found.figures["label.accuracy.ratio"] is None and found.figures["shapes.k.ratio"] == 0
    assert "the median of every job of its first part is 0 s" in found.figures["label.accuracy.ratio.reason"]
    assert found.figures["label.accuracy.delta"] is not None
    not_there = {
        "global": "no job has a median of more",
        "paper_ratio": "no shapes of ratios",
        "user_request": "no users",
    }
    for name, why in not_there.items():
        assert found.figures[f"predict.crps.{name}"] is found.figures[f"difference.crps_low.{name}"] is None
        assert why in found.figures[f"predict.crps.{name}.reason"]
    assert found.figures["predict.crps.model"] < runtime_s.mean()


def test_a_log_too_short_to_weigh_a_stack_by_says_so(log_of):
    figures = evaluate_runs(log_of(drawn(50), ["a", "b"] * 25), QUICK).figures
    assert figures["predict.crps.stacked"] is None and "too few runs" in figures["predict.crps.stacked.reason"]
    assert evaluate_runs(log_of(drawn(80), ["a", "b"] * 40), QUICK).figures["predict.crps.stacked"] > 0


def test_a_log_of_failed_runs_alone_is_refused_and_says_how_many_failed(tmp_path):
    rows = [f"{i},job,2026-01-{i + 1:02}T00:00:00Z,60,failed" for i in range(20)]
    log = tmp_path / "failed.csv"
    log.write_text("\n".join(["run_id,name,started_at,runtime_s,status", *rows]))
    with pytest.raises(BadInput, match="no finished run with a runtime, 20 that failed or were stopped"):
        evaluate_logs([str(log)], Intake("evaluated", "", ReadParams(), GroupParams()), QUICK, memory_mb=500)


def test_runs_of_no_time_at_all_are_foretold_exactly(log_of):
    figures = evaluate_runs(log_of(np.zeros(300), ["job"] * 300), QUICK).figures
    assert figures["predict.crps.model"] < 0.001 and figures["predict.coverage90.model"] == 1


def test_the_same_log_gives_the_same_figures_in_any_order_of_jobs_names(log_of):
    runs = log_of(drawn(400), [f"job{i % 8}" for i in range(400)])
    one, again = (evaluate_runs(runs, QUICK).figures for _ in range(2))
    assert one == again


@pytest.mark.slow
def test_a_hundred_thousand_jobs_of_three_runs_get_an_answer(log_of):
    n = 300_000
    figures = evaluate_runs(log_of(drawn(n), [f"job{i % 100_000}" for i in range(n)]), QUICK).figures
    assert figures["groups"] == 100_000 and figures["predict.crps.model"] > 0
