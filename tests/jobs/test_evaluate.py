"""The protocol of an evaluation on logs that are hard: each gets figures, or one clear line."""

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.jobs.evaluate import GIVEN, choose_key, evaluate_logs, evaluate_runs
from tasks.jobs.intake import Intake
from tasks.jobs.params import EvaluateParams, GroupParams, PredictParams, ReadParams, SplitParams


@pytest.fixture
def users(log_of):
    """400 runs of ten users, each with its own usual time; every run has a name, and a job, of its own."""
    user = np.arange(400) % 10
    runtime_s = np.exp(1 + 0.5 * user + np.random.default_rng(0).normal(0, 0.1, 400))
    known = {"user_name": [f"u{i}" for i in user], "requested_cpus": 4.0, "requested_runtime_s": 3600.0}
    # names that no rule takes for the same: words of letters
    words = ["".join(chr(97 + int(digit)) for digit in f"{i:06}") for i in range(400)]
    return log_of(runtime_s, words, name=words, **known)


def test_where_no_job_recurs_the_key_is_the_one_whose_history_tells_most(users):
    found = choose_key(users, SplitParams())
    assert found.by == ("user", "cpus", "limit") or found.by == ("user", "cpus")
    assert found.crps_s[",".join(found.by)] < 0.5 * found.crps_s[GIVEN]
    assert "only 0% of the runs recur" in found.reason
    assert found.regrouped(users)["group_key"].nunique() == 10


def test_jobs_that_recur_stay_as_they_are_grouped_and_the_better_key_is_told(users):
    pairs = users.assign(group_key=[f"job{i // 20}" for i in range(400)])
    found = choose_key(pairs, SplitParams())
    assert found.by == ()
    assert "100% of the runs recur as they are grouped, which stays" in found.reason
    assert found.regrouped(pairs) is pairs


def test_whole_names_are_the_key_where_they_recur_and_tell_more_than_what_is_left_of_them(log_of):
    pipeline = np.arange(400) % 10
    runtime_s = np.exp(1 + 0.5 * pipeline + np.random.default_rng(0).normal(0, 0.1, 400))
    names = [f"pipeline_{10_001 + i}_load" for i in pipeline]
    log = log_of(runtime_s, ["pipeline_{n}_load"] * 400, name=names)
    found = choose_key(log, SplitParams())
    assert found.by == ("user", "full_name")
    assert "100% of the runs recur by their whole names" in found.reason
    assert found.regrouped(log)["group_key"].nunique() == 10
    once = log.assign(name=[f"pipeline_{10_001 + i}_load" for i in range(400)])  # a name a run tells nothing
    assert choose_key(once, SplitParams()).by == ()


def test_the_test_runs_do_not_choose(users):
    later = users.index >= 320
    changed = users.assign(runtime_s=users["runtime_s"].where(~later, 9.0), user_name=np.where(later, "x", "y"))
    changed["user_name"] = changed["user_name"].where(later, users["user_name"])
    assert choose_key(changed, SplitParams()) == choose_key(users, SplitParams())


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
    assert found.figures["predict.crps.model"] < runtime_s.mean()


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
