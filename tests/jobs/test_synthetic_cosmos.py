"""Draws from the Cosmos moments have the moments of their source."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs import steps
from tasks.jobs.columns import ALL_COLUMNS
from tasks.jobs.mixing import kind_of_runs
from tasks.jobs.params import ReportParams, SummaryParams
from tasks.jobs.synthetic_cosmos import ATTRIBUTES, JobMoments, draw_attributes, read_moments, simulate_cosmos_runs

N = 4000
STANDARD_ERRORS = 5.0  # of a mean: one false alarm in a million
GENTLE = 1.0  # jobs and attributes whose deviation is at most the mean: beyond, 4,000 draws do not settle


@pytest.fixture(scope="module")
def jobs() -> list[JobMoments]:
    path = Path(os.environ.get("WHORL_DATASETS", "-")) / "cosmos" / "trace1_training.csv.gz"
    if not path.exists():
        pytest.skip("needs cosmos/trace1_training.csv.gz in the folder WHORL_DATASETS")
    return read_moments(path)[:60]


def gentle(job: JobMoments) -> np.ndarray:
    return (job.deviations > 1e-6 * job.means) & (job.deviations <= GENTLE * job.means)


def made_up(correlation: float) -> JobMoments:
    """RunTime 100 ± 20 and WaitTime 40 ± 10, correlated; all else is constant. The covariance is that of 11 runs."""
    means, deviations = np.ones(15), np.zeros(15)
    means[[13, 14]], deviations[[13, 14]] = (40, 100), (10, 20)
    covariance = np.diag(deviations**2)
    covariance[13, 14] = covariance[14, 13] = correlation * 200
    return JobMoments("7", means, deviations, covariance * 11 / 10, (13, 14), ())


@pytest.mark.parametrize("correlation", [-0.6, 0.0, 0.8])
def test_a_job_worked_out_by_hand_keeps_mean_deviation_and_correlation(correlation: float) -> None:
    drawn = draw_attributes(made_up(correlation), 100_000, np.random.default_rng(5))
    assert drawn["RunTime"].mean() == pytest.approx(100, abs=5 * 20 / 316)
    assert drawn["RunTime"].std() == pytest.approx(20, rel=0.02)
    assert drawn["RunTime"].corr(drawn["WaitTime"]) == pytest.approx(correlation, abs=0.02)
    assert (drawn["VC"] == 1).all() and (drawn > 0).all(axis=None)


def test_means_lie_within_their_standard_errors(jobs: list[JobMoments]) -> None:
    rng = np.random.default_rng(1)
    for job in jobs:
        drawn, kept = draw_attributes(job, N, rng), gentle(job)
        error = np.sqrt(job.deviations**2 + 0.25) / np.sqrt(N)
        off = np.abs(drawn.mean().to_numpy() - job.means) / error
        assert (off[kept] < STANDARD_ERRORS).all(), (job.signature, off)


def test_deviations_are_those_of_the_source(jobs: list[JobMoments]) -> None:
    rng, ratios = np.random.default_rng(2), []
    for job in jobs:
        kept = gentle(job) & (job.deviations > 2)  # below, the rounding of whole numbers adds visibly
        ratios += (draw_attributes(job, N, rng).std().to_numpy()[kept] / job.deviations[kept]).tolist()
    assert len(ratios) > 100 and np.median(ratios) == pytest.approx(1, abs=0.01)
    assert np.quantile(np.abs(np.array(ratios) - 1), 0.95) < 0.12


def test_correlations_are_those_of_the_source(jobs: list[JobMoments]) -> None:
    rng, misses = np.random.default_rng(3), []
    for job in jobs:
        kept = [place for place in job.dependent if gentle(job)[place] and job.deviations[place] > 2]
        given = job.covariance[np.ix_(kept, kept)]
        spread = np.sqrt(np.diag(given))
        drawn = np.corrcoef(draw_attributes(job, N, rng).to_numpy()[:, kept], rowvar=False)
        misses += np.abs(given / np.outer(spread, spread) - drawn)[np.triu_indices(len(kept), 1)].tolist()
    assert len(misses) > 100 and np.median(misses) < 0.02 and np.quantile(misses, 0.95) < 0.1


def test_whole_attributes_are_whole_and_constant_ones_constant(jobs: list[JobMoments]) -> None:
    drawn = draw_attributes(jobs[0], 100, np.random.default_rng(4))
    assert (drawn["VertexCount"] % 1 == 0).all() and (drawn["VC"] == drawn["VC"][0]).all()
    assert list(drawn) == list(ATTRIBUTES)


def test_the_same_seed_gives_the_same_runs() -> None:
    one, other = (simulate_cosmos_runs([made_up(0.5)], 20, np.random.default_rng(9)) for _ in range(2))
    pd.testing.assert_frame_equal(one, other)
    assert one["is_simulated"].all() and set(one) <= set(ALL_COLUMNS) and one["run_id"].is_unique


def test_simulated_runs_among_measured_ones_are_refused_and_alone_are_named(job_log, caplog) -> None:
    drawn = simulate_cosmos_runs([made_up(0.5)], 20, np.random.default_rng(9))
    warehouse = job_log(drawn, source="drawn")
    job_log(drawn, source="both")
    steps.summarise(warehouse, "drawn", SummaryParams())
    assert "source 'drawn' is simulated: its runs were drawn, not measured" in caplog.text
    steps.summarise(warehouse, "both", SummaryParams())
    job_log([{"runtime_s": 1.0}], source="both")
    for ask in (
        lambda: steps.summarise(warehouse, "both", SummaryParams()),
        lambda: steps.report(warehouse, "both", ReportParams()),
    ):
        with pytest.raises(BadInput, match="20 simulated runs stand among 1 measured ones; expected one kind only"):
            ask()


def test_what_if_runs_do_not_say_what_the_others_are(job_log, caplog) -> None:
    drawn = simulate_cosmos_runs([made_up(0.5)], 20, np.random.default_rng(9))
    warehouse = job_log(pd.concat([drawn, drawn[:1].assign(run_id="w", is_simulated=False, what_if="no_spare")]))
    assert kind_of_runs(warehouse, "log") == "simulated"
