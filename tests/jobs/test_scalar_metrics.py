"""Scalar metrics and the faults of the COV: by hand, and on jobs that are made to have them."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.scalar_metrics import cov_faults, scalar_metrics
from tasks.jobs.synthetic import SimulatedJob, simulate_runs


def runs_of(**runtimes):
    return pd.concat(pd.DataFrame({"group_key": key, "runtime_s": values}) for key, values in runtimes.items())


def test_the_scalars_of_four_runs_are_those_worked_out_by_hand():
    job = scalar_metrics(runs_of(job=[1.0, 2.0, 3.0, 6.0], zero=[0.0, 0.0])).loc["job"]
    assert job[["n_runs", "median_s", "mean_s"]].tolist() == [4, 2.5, 3]
    assert job["p95_s"] == pytest.approx(3 + 0.85 * 3)  # position 0.95 * 3 = 2.85
    assert job["cov"] == pytest.approx(np.sqrt(14 / 3) / 3)


def test_a_job_of_no_time_has_no_cov():
    assert np.isnan(scalar_metrics(runs_of(zero=[0.0, 0.0])).loc["zero", "cov"])


def test_one_slow_run_makes_the_cov_jump():
    faults = cov_faults(runs_of(steady=[9.0, 10.0, 11.0] * 7, hit=[*[9.0, 10.0, 11.0] * 7, 1000.0]))
    first = faults.jumps.iloc[0]
    assert (first["group_key"], first["n_runs"]) == ("hit", 22)
    assert first["cov_without"] == pytest.approx(np.std([9, 10, 11] * 7, ddof=1) / 10)
    assert first["times"] > 40
    assert faults.jumps.iloc[1]["times"] < 1.1


def test_the_cov_of_few_runs_of_a_skewed_job_is_too_small():
    truth = [
        SimulatedJob(name=f"{i}", n_runs=400, log_deviation=0.1, slow_share=0.05, slow_factor=20) for i in range(20)
    ]
    faults = cov_faults(simulate_runs(truth, np.random.default_rng(0)))
    assert faults.few["n_runs"].tolist() == [3, 5, 10]
    assert faults.few["n_samples"].tolist() == [20 * 133, 20 * 80, 20 * 40]
    assert faults.few["share"].is_monotonic_increasing
    assert faults.few["share"].max() < 0.9


def test_jobs_of_one_cov_and_different_shapes_are_paired():
    two_modes = [5.0, 15.0] * 20
    slow = [10.0] * 39 + [10.0 + 1.0]
    deviation = np.std(two_modes, ddof=1) / np.mean(two_modes)
    one_outlier = np.array([10.0] * 39 + [0.0])
    for tail in np.linspace(10, 100, 9001):  # the outlier that gives the same COV
        one_outlier[-1] = tail
        if np.std(one_outlier, ddof=1) / np.mean(one_outlier) >= deviation:
            break
    pairs = cov_faults(runs_of(modes=two_modes, outlier=one_outlier, steady=slow)).pairs
    assert len(pairs) == 1
    assert {pairs["group_key"][0], pairs["other_key"][0]} == {"modes", "outlier"}
    assert pairs["cov"][0] == pytest.approx(pairs["other_cov"][0], rel=0.02)
    assert pairs["distance"][0] == pytest.approx(0.5)  # half of the runs of `modes` lie below all of `outlier`


def test_short_jobs_that_vary_more_show_in_the_first_quarter():
    jobs = {f"job {i}": 10.0**i * np.array([1 - 0.5 / (i + 1), 1, 1 + 0.5 / (i + 1)] * 7) for i in range(8)}
    short = cov_faults(runs_of(**jobs)).short
    assert short["n_groups"].tolist() == [2, 2, 2, 2]
    assert short["median_s"].is_monotonic_increasing
    assert short["cov"].is_monotonic_decreasing


def test_jobs_of_little_support_are_refused_in_one_line():
    with pytest.raises(BadInput, match=r"^jobs: none has 20 runs and a median above 0; expected one at least; lower"):
        cov_faults(runs_of(job=[1.0, 2.0]))


@pytest.mark.parametrize("runtimes", [[5.0] * 20, [0.0] * 5 + [1.0] * 15])
def test_constant_and_zero_runtimes_have_faults_to_show_or_none(runtimes):
    faults = cov_faults(runs_of(job=runtimes))
    assert len(faults.jumps) == 1
    assert faults.pairs.empty
