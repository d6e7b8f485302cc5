"""Figures of shapes: a row a shape with its numbers, elbow and choice, likelihoods, and the faults of the COV."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadSetting
from tasks.jobs.normalisation import Bins
from tasks.jobs.shapes import ShapeSet
from tasks.report.jobs_shapes import FIRST, compare_with_shapes, cov_figure, find_cov_faults, likelihood_figure

RATIO = Bins(kind="ratio", low=0, high=10, n_bins=12)
DELTA = Bins(kind="delta", low=-60, high=60, n_bins=12)


def shapes(bins, *rows):
    centres = np.array(rows, dtype=float)
    k = len(centres)
    return ShapeSet(bins, centres / centres.sum(axis=1, keepdims=True), np.full(k, 1 / k), np.full(k, 30), 1.0)


def table(k, **changes):
    row = {"n_groups": 27, "n_runs": 1620, "outlier_percent": 1.63, "p25_p75": 0.06, "p95": 1.41, "std": 2.46}
    return pd.DataFrame([row | changes] * k)


def words_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize")))


def test_a_prior_moves_the_posterior_and_not_the_likelihood():
    found = shapes(RATIO, np.r_[0, 8, 1, [0] * 9], np.r_[0, 1, 8, [0] * 9])
    one = compare_with_shapes("job", np.r_[0, 1, [0] * 10], found, empty_bin_prior=1e-9, prior=np.array([0.1, 0.9]))
    assert one.posteriors[0] == pytest.approx(0.1 * 8 / (0.1 * 8 + 0.9 * 1), rel=1e-6)
    assert one.log_likelihoods[0] == pytest.approx(np.log(8 / 9), rel=1e-6)


def test_the_two_shapes_shown_are_the_most_likely_ones_with_their_likelihoods():
    found = shapes(RATIO, np.r_[0, 8, 1, [0] * 9], np.r_[0, 1, 8, [0] * 9], np.r_[[0] * 9, 1, 1, 1])
    counts = np.r_[0, 1, 3, [0] * 9]
    job = compare_with_shapes("job", counts, found, empty_bin_prior=1e-9)
    assert job.numbers == (1, 0)
    assert job.log_likelihoods[0] == pytest.approx(np.log(1 / 9) + 3 * np.log(8 / 9), rel=1e-6)
    assert job.posteriors[0] == pytest.approx(64 / 65, rel=1e-6)  # 8³ against 8, the third is ruled out
    assert "here shape 1" in likelihood_figure(job).words
    assert compare_with_shapes("job", counts, found, empty_bin_prior=1e-9, numbers=(2, 0)).numbers == (2, 0)


def test_a_job_without_runs_has_no_likelihood_and_a_wrong_number_is_refused():
    found = shapes(RATIO, [1] * 12, [1] * 12)
    assert compare_with_shapes("job", np.zeros(12), found, empty_bin_prior=0.1) is None
    for numbers in ((0, 2), (-1, 0), (1, 1)):
        with pytest.raises(BadSetting, match=r"expected two different ones of the 2 shapes, from 0 to 1"):
            compare_with_shapes("job", np.ones(12), found, empty_bin_prior=0.1, numbers=numbers)
    with pytest.raises(BadSetting, match="there is only one"):
        compare_with_shapes("job", np.ones(12), shapes(RATIO, [1] * 12), empty_bin_prior=0.1)


def job(key, values):
    times = pd.date_range("2026-01-01", periods=len(values), freq="h")
    return pd.DataFrame({"group_key": key, "submitted_at": times, "runtime_s": np.asarray(values, dtype=float)})


def test_the_run_that_moves_a_cov_most_is_found_and_its_gap_stays():
    values = [10.0, 11.0] * 15
    values[20] = 500.0
    faults = find_cov_faults(pd.concat([job("steady", [10.0, 11.0] * 15), job("jumpy", values)]))
    unstable = faults.unstable
    assert (unstable.group_key, unstable.jump_at) == ("jumpy", 20)
    assert unstable.runtime_ratio == pytest.approx(500 / 11)
    for n in (FIRST, 21, 30):
        so_far = np.array(values[:n])
        assert unstable.cov[n - FIRST] == pytest.approx(np.std(so_far, ddof=1) / so_far.mean())
    assert unstable.gap.max() < 0.2


def test_the_order_of_rows_changes_no_fault():
    rng = np.random.default_rng(3)
    log = pd.concat([job(f"{i}", rng.lognormal(i, 0.4, 25)) for i in range(9)])
    one, other = find_cov_faults(log), find_cov_faults(log.sample(frac=1, random_state=1))
    assert one.unstable.group_key == other.unstable.group_key
    assert np.array_equal(one.unstable.cov, other.unstable.cov)
    assert one.coarse.keys == other.coarse.keys


def test_two_jobs_with_one_cov_and_other_distributions_are_found():
    two_modes = [1.0, 3.0] * 20  # COV 0.51
    one_tail = [1.0] * 38 + [3.6] * 2  # about the same COV
    others = [job("none", [1.0, 1.1] * 20), job("two modes", two_modes), job("tail", one_tail)]
    coarse = find_cov_faults(pd.concat(others)).coarse
    covs = dict(zip(coarse.keys, coarse.covs, strict=True))
    assert set(covs) == {"two modes", "tail"}
    assert max(covs.values()) <= 1.05 * min(covs.values())


def test_bias_is_shown_by_jobs_from_short_to_long():
    log = pd.concat([job(f"{i:02}", 10.0**i * np.array([1.0, 1.0 + 0.5 / (i + 1)] * 12)) for i in range(4)])
    bands = find_cov_faults(log).biased.bands
    assert [round(np.log10(median)) for median, _ in bands] == [0, 1, 2, 3]
    assert [cov for _, cov in bands] == sorted((cov for _, cov in bands), reverse=True)


def test_a_log_shows_the_faults_that_it_has_and_none_without_jobs_of_enough_runs():
    assert find_cov_faults(job("short", [1.0] * 19)) is None
    assert find_cov_faults(job("none", [])) is None
    constant = find_cov_faults(job("constant", [5.0] * 30))
    assert (constant.biased, constant.unstable, constant.coarse) == (None, None, None)
    assert cov_figure(constant).chart is None
    one = find_cov_faults(job("one", [5.0] * 29 + [9.0]))
    assert cov_figure(one).chart is not None
