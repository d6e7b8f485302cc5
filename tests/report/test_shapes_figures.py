"""Figures of shapes: a row a shape with its numbers, elbow and choice, likelihoods, and the faults of the COV."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadSetting
from tasks.jobs.normalisation import Bins
from tasks.jobs.shapes import (
    InertiaCurve,
    ShapeSet,
)
from tasks.report.direct_labels import spread_apart
from tasks.report.shapes_axis import FLOOR, bin_axis
from tasks.report.shapes_bins import BinComparison, draw_bins
from tasks.report.shapes_cov_drawing import draw_cov_faults
from tasks.report.shapes_cov_faults import FIRST, find_cov_faults
from tasks.report.shapes_inertia import InertiaChoice, draw_inertia
from tasks.report.shapes_likelihood import compare_with_shapes, draw_likelihood
from tasks.report.shapes_panels import ShapePanels, draw_shapes
from tasks.report.shapes_rivals import RivalClusterings, draw_rivals
from tasks.report.style import NARROW_IN, ORANGE, WIDE_IN

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


@pytest.mark.parametrize("width_in", [WIDE_IN, NARROW_IN])
def test_every_shape_is_a_panel_with_its_row_of_table_2(width_in):
    figure = draw_shapes(ShapePanels(shapes(RATIO, [1] * 12, [2] * 12, [1] * 12), table(3)), width_in)
    assert len(figure.axes) == 3
    words = words_of(figure)
    for number in ("27", "0.06", "1.41", "2.46", "1.6 %"):
        assert number in words


def test_deltas_are_written_as_times_and_an_unknown_deviation_as_a_dash():
    panels = ShapePanels(shapes(DELTA, [1] * 12), table(1, p25_p75=936.0, p95=8.5, std=np.nan))
    words = words_of(draw_shapes(panels, WIDE_IN)).split("\n")
    assert {"15.6 min", "8.5 s", "–"} <= set(words)
    assert panels.evidence == "n = 1,620 runs of 27 jobs in 1 shapes, 12 bins"


def test_outliers_stand_in_bars_of_their_own_and_only_where_there_are_any():
    pmf = np.full(12, 0.08)
    pmf[0], pmf[-1] = 0.0, 0.2
    low, high = bin_axis(DELTA, pmf).low_slot, bin_axis(DELTA, pmf).high_slot
    assert (low[1] < DELTA.low, high[0] > DELTA.high) == (True, True)
    assert list(bin_axis(DELTA, pmf).outliers(pmf)) == [(high, 0.2)]
    assert bin_axis(RATIO, pmf).low_slot is None


def test_ratios_are_shown_from_the_first_bin_that_any_shape_fills_and_nothing_is_lost():
    pmf = np.array([0, 0, FLOOR / 2, 0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.01, 0, 0])
    axis = bin_axis(Bins(kind="ratio", low=0, high=1.0 * 2, n_bins=12), pmf)
    assert 10 ** axis.edges[0] == pytest.approx(0.4)
    assert axis.inside(pmf)[0] == 0.5
    assert len(axis.edges) == len(axis.inside(pmf)) + 1


def test_a_first_bin_that_begins_at_no_time_is_drawn_from_half_its_width():
    axis = bin_axis(RATIO, np.full(12, 1 / 12))
    assert 10 ** axis.edges[0] == pytest.approx(0.5)
    assert len(axis.inside(np.full(12, 1 / 12))) == 10


def test_elbow_and_choice_are_told_apart_and_an_unclear_curve_has_no_elbow():
    curve = InertiaCurve([1, 2, 3, 4, 5, 6], [100.0, 40, 20, 15, 12, 10], 3)
    words = words_of(draw_inertia(InertiaChoice(curve, 6, 70), WIDE_IN))
    assert "elbow: 3" in words
    assert "chosen: 6 (10.0 %)" in words
    assert "elbow and choice: 3" in words_of(draw_inertia(InertiaChoice(curve, 3, 70), WIDE_IN))
    flat = InertiaCurve([1, 2], [0.0, 0.0], None)
    assert "elbow" not in words_of(draw_inertia(InertiaChoice(flat, 2, 3), WIDE_IN))


def test_the_agreement_of_halves_stands_on_an_axis_from_nothing_to_all():
    found = pd.DataFrame({"n_bins": [50, 200], "stability": [0.05, 0.07], "log_score": [-1.2, -1.19], "n_groups": 9})
    stability, log_score = draw_bins(BinComparison(found, 200), WIDE_IN).axes
    low, high = stability.get_ylim()
    assert (low < 0, high > 1) == (True, True)
    assert 0.01 / np.ptp(log_score.get_ylim()) < 0.1  # a difference of little is drawn as little
    orange = [line for line in stability.lines if line.get_color() == ORANGE]
    assert [line.get_ydata().tolist() for line in orange] == [[0.07]]


def test_a_comparison_without_log_score_has_one_panel_and_none_without_rows():
    found = pd.DataFrame({"n_bins": [50], "stability": [0.5], "log_score": [np.nan], "n_groups": 9})
    assert len(draw_bins(BinComparison(found, 200), NARROW_IN).axes) == 1
    assert draw_bins(BinComparison(found.head(0), 200), WIDE_IN) is None


def test_k_means_stands_first_and_the_others_the_most_even_first():
    methods = ["agglomerative (average)", "hierarchical (complete)", "k-means"]
    rivals = RivalClusterings(
        pd.DataFrame({"method": methods, "largest_share": [0.9, 0.5, 0.6], "n_groups": [30, 30, 30]}), 4
    )
    axes = draw_rivals(rivals, WIDE_IN).axes[0]
    assert rivals.ordered["method"].tolist() == ["k-means", "hierarchical (complete)", "agglomerative (average)"]
    assert [bar.get_width() for bar in axes.patches] == [0.6, 0.5, 0.9]
    assert "all alike: 25.0 %" in words_of(axes.figure)
    assert draw_rivals(RivalClusterings(rivals.table.head(0), 4), WIDE_IN) is None


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
    words = words_of(draw_likelihood(job, WIDE_IN))
    assert "shape 1: log-likelihood −2.6, posterior 98.5 %" in words
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
    assert draw_cov_faults(constant, WIDE_IN) is None
    one = find_cov_faults(job("one", [5.0] * 29 + [9.0]))
    assert len(draw_cov_faults(one, NARROW_IN).axes) == 1


def test_labels_keep_their_order_and_move_no_more_than_they_must():
    assert spread_apart([0.5, 0.1], 0.1, 0, 1).tolist() == [0.5, 0.1]
    assert spread_apart([0.5, 0.5], 0.1, 0, 1) == pytest.approx([0.45, 0.55])
    assert spread_apart([0.0, 0.0, 1.0], 0.1, 0, 1) == pytest.approx([0.0, 0.1, 1.0])
    assert spread_apart([1.0, 1.0], 0.1, 0, 1) == pytest.approx([0.9, 1.0])
    assert spread_apart([], 0.1, 0, 1).size == 0


@pytest.mark.parametrize("n", [2, 5, 9])
def test_labels_that_fit_are_apart_and_inside(n):
    rng = np.random.default_rng(n)
    for _ in range(50):
        wanted = rng.uniform(size=n)
        found = spread_apart(wanted, 0.1, 0, 1)
        assert np.diff(np.sort(found)).min() >= 0.1 - 1e-12
        assert (found.min() >= -1e-12, found.max() <= 1 + 1e-12) == (True, True)
        assert (np.argsort(found) == np.argsort(wanted)).all()
