"""Figures of predictions: what they count, who is compared, and what they show of an empty or odd input."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.distribution import (
    Empirical,
    gather_history,
)
from tasks.jobs.scores import (
    PERCENTILES,
    GroupDistance,
    Pooled,
)
from tasks.report.prediction_by_history import AccuracyBand, AccuracyByHistory, draw_accuracy
from tasks.report.prediction_calibration import CalibrationCheck, draw_calibration
from tasks.report.prediction_confusion import Confusion, draw_confusion
from tasks.report.prediction_distances import MOST_DOTS, DistanceComparison, draw_distances
from tasks.report.prediction_fan import COLUMNS, Fan, draw_fan, fan_of
from tasks.report.prediction_quantiles import QuantileComparison, draw_quantiles
from tasks.report.style import BLUE, NARROW_IN, ORANGE, WIDE_IN

NOON = pd.Timestamp("2026-03-01 12:00")
NO_PAST = pd.DataFrame({"submitted_at": pd.to_datetime([]), "runtime_s": np.zeros(0)})


def words_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize")))


def test_the_confusion_is_in_percent_of_the_actual_shape():
    confusion = Confusion(np.array([[90, 10, 0], [0, 0, 0], [25, 0, 75]]))
    words = words_of(draw_confusion(confusion, WIDE_IN)).split("\n")
    assert [words.count(number) for number in ("90", "10", "25", "75", "100")] == [1, 1, 1, 1, 2]  # 100: size of rows
    assert "% of each row; 82.5 % right" in words
    assert np.isnan(confusion.shares[1]).all()


def test_nothing_predicted_is_an_empty_table_without_an_accuracy():
    confusion = Confusion(np.zeros((3, 3), dtype=int))
    assert confusion.accuracy is None
    assert "– right" in words_of(draw_confusion(confusion, NARROW_IN))


def test_accuracy_names_model_ceiling_and_history_and_counts_each_band():
    bands = [AccuracyBand("1–5", 40, 0.5, 0.7, 0.4), AccuracyBand("6–10", 160, 0.8, 0.9, 0.6)]
    figure = draw_accuracy(AccuracyByHistory(bands), WIDE_IN)
    words = words_of(figure).split("\n")
    assert {"model 80.0 %", "ceiling 90.0 %", "history 60.0 %", "40", "160"} <= set(words)
    assert [bar.get_height() for bar in figure.axes[1].patches] == [40, 160]


def test_a_band_or_a_reference_without_a_value_is_left_out():
    bands = [AccuracyBand("1–5", 0, None), AccuracyBand("6–10", 5, 0.8)]
    lines = draw_accuracy(AccuracyByHistory(bands), WIDE_IN).axes[0].lines
    assert [line.get_xydata().tolist() for line in lines] == [[[1, 0.8]]]
    assert draw_accuracy(AccuracyByHistory([]), NARROW_IN)


def pooled(factor, n=100):
    actual = np.geomspace(1, 1000, 99)
    return Pooled(0.1, PERCENTILES, factor * actual, actual, abs(factor - 1) * actual, 60.0, n)


def test_each_predictor_has_a_square_and_a_line_of_errors_in_its_own_colour():
    found = {
        "model": pooled(1.1),
        "history": pooled(2.0),
        "nobody": Pooled(None, PERCENTILES, *[np.zeros(0)] * 3, None, 0),
    }
    figure = draw_quantiles(QuantileComparison(found), WIDE_IN)
    assert len(figure.axes) == 3
    errors = figure.axes[-1].lines
    assert [line.get_color() for line in errors] == [BLUE, ORANGE]
    assert errors[1].get_ydata()[-1] == pytest.approx(1000)
    assert "model\nKS 0.10\nerror 1 min" in words_of(figure)
    assert draw_quantiles(QuantileComparison({}), WIDE_IN) is None


def test_a_perfect_prediction_has_no_error_and_can_still_be_drawn():
    assert draw_quantiles(QuantileComparison({"model": pooled(1.0)}), NARROW_IN)


def test_coverage_counts_the_runs_inside_the_central_interval():
    check = CalibrationCheck(np.array([0.01, 0.3, 0.5, 0.94, 0.99]))
    assert check.coverage(0.9) == 0.6
    assert check.coverage(0.5) == 0.4
    words = words_of(draw_calibration(check, WIDE_IN))
    assert "90 % holds 60.0 %" in words
    assert "50 % holds 40.0 %" in words


def test_without_runs_there_is_no_calibration():
    check = CalibrationCheck(np.zeros(0))
    assert draw_calibration(check, WIDE_IN) is None
    with pytest.raises(ValueError, match="no runs"):
        check.coverage(0.9)


def test_many_jobs_are_thinned_but_their_mean_is_of_all():
    by_group = np.r_[np.zeros(900), np.ones(100)]
    found = DistanceComparison({"model": GroupDistance(0.1, 1000, 9000, 3, None, by_group)})
    figure = draw_distances(found, WIDE_IN)
    dots = figure.axes[0].collections[0].get_offsets()
    assert len(dots) == MOST_DOTS
    assert dots[:, 0].mean() == pytest.approx(0.1, abs=0.01)
    assert "0.10" in words_of(figure)
    assert found.evidence == "n = 1,000 jobs, 9,000 runs; 3 jobs with too few runs left out"


def test_no_job_with_enough_runs_has_no_distances():
    none = GroupDistance(None, 0, 0, 7, None, np.zeros(0), "none of 7 groups has 20 runs")
    assert draw_distances(DistanceComparison({"model": none}), WIDE_IN) is None
    assert DistanceComparison({}).evidence == "n = 0 jobs"


def fan(actual, *, past=NO_PAST, low=5.0, high=20.0):
    times = NOON + pd.to_timedelta(np.arange(len(actual)), unit="h")
    frame = pd.DataFrame({"submitted_at": times, "runtime_s": np.array(actual, dtype=float)})
    return Fan("job", frame.assign(p05_s=low, p25_s=8.0, p50_s=10.0, p75_s=13.0, p95_s=high)[COLUMNS], past)


def test_runs_outside_their_interval_are_orange_and_counted():
    found = fan([4, 10, 12, 50, 20, np.nan])
    figure = draw_fan(found, WIDE_IN)
    assert found.is_outside.tolist() == [True, False, False, True, False, False]
    assert found.inside_share == pytest.approx(0.6)
    words = words_of(figure)
    assert "2 of 5 outside the 90 % interval" in words
    assert "50 s" in words  # the one that took longest beyond its interval


def test_bands_are_named_at_their_ends():
    words = words_of(draw_fan(fan([9, 10, 11]), NARROW_IN)).split("\n")
    assert {"5 %", "25 %", "median", "75 %", "95 %"} <= set(words)


def test_the_past_takes_a_part_of_the_width_and_the_rest_of_it_is_left_out():
    hours = np.r_[-1000, -3, -1]
    past = pd.DataFrame({"submitted_at": NOON + pd.to_timedelta(hours, unit="h"), "runtime_s": [7.0, 8.0, 9.0]})
    figure = draw_fan(fan([10] * 11, past=past), WIDE_IN)
    dots = [len(marks.get_offsets()) for marks in figure.axes[0].collections if len(marks.get_offsets()) == 2]
    assert dots == [2]
    assert "past" in words_of(figure)


@pytest.mark.parametrize("actual", [[10], [np.nan], [0.0, 0.0], [np.nan, np.nan]])
def test_one_run_or_runs_yet_to_come_are_drawn(actual):
    assert draw_fan(fan(actual), WIDE_IN)


def test_intervals_that_begin_at_no_time_at_all_are_drawn():
    assert draw_fan(fan([0, 3, 10], low=0.0), NARROW_IN)


def test_without_predictions_there_is_no_fan():
    assert draw_fan(fan([]), WIDE_IN) is None


def test_the_fan_of_a_prediction_holds_its_quantiles_in_order_of_submission():
    history = gather_history(np.arange(1.0, 101.0), np.zeros(100, dtype=int))
    runs = pd.DataFrame({"submitted_at": [NOON, NOON - pd.Timedelta("1h")], "runtime_s": [7.0, np.nan]})
    found = fan_of("job", runs, Empirical(history, np.zeros(2, dtype=int)), NO_PAST)
    assert found.runs["submitted_at"].is_monotonic_increasing
    assert found.runs[COLUMNS[2:]].iloc[0].tolist() == [5, 25, 50, 75, 95]
    assert found.runs["runtime_s"].isna().tolist() == [True, False]
    with pytest.raises(ValueError, match="expected 2, one for each predicted instance"):
        fan_of("job", runs.head(1), Empirical(history, np.zeros(2, dtype=int)), NO_PAST)
