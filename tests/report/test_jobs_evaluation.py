"""Figures of predictions: what they count, who is compared, and what they show of an empty or odd input."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.distribution import Empirical, gather_history
from tasks.jobs.scores import PERCENTILES, Pooled
from tasks.report.jobs_evaluation import COLUMNS, Fan, calibration_figure, covered, fan_of

NOON = pd.Timestamp("2026-03-01 12:00")
NO_PAST = pd.DataFrame({"submitted_at": pd.to_datetime([]), "runtime_s": np.zeros(0)})


def words_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize")))


def pooled(factor, n=100):
    actual = np.geomspace(1, 1000, 99)
    return Pooled(0.1, PERCENTILES, factor * actual, actual, abs(factor - 1) * actual, 60.0, n)


def test_coverage_counts_the_runs_inside_the_central_interval():
    pit = np.array([0.01, 0.3, 0.5, 0.94, 0.99])
    assert (covered(pit, 0.9), covered(pit, 0.5)) == (0.6, 0.4)
    assert "The 90 % interval held 60.0 %" in calibration_figure(pit).words


def fan(actual, *, past=NO_PAST, low=5.0, high=20.0):
    times = NOON + pd.to_timedelta(np.arange(len(actual)), unit="h")
    frame = pd.DataFrame({"submitted_at": times, "runtime_s": np.array(actual, dtype=float)})
    return Fan("job", frame.assign(p05_s=low, p25_s=8.0, p50_s=10.0, p75_s=13.0, p95_s=high)[COLUMNS], past)


def test_the_fan_of_a_prediction_holds_its_quantiles_in_order_of_submission():
    history = gather_history(np.arange(1.0, 101.0), np.zeros(100, dtype=int))
    runs = pd.DataFrame({"submitted_at": [NOON, NOON - pd.Timedelta("1h")], "runtime_s": [7.0, np.nan]})
    found = fan_of("job", runs, Empirical(history, np.zeros(2, dtype=int)), NO_PAST)
    assert found.runs["submitted_at"].is_monotonic_increasing
    assert found.runs[COLUMNS[2:]].iloc[0].tolist() == [5, 25, 50, 75, 95]
    assert found.runs["runtime_s"].isna().tolist() == [True, False]
    with pytest.raises(ValueError, match="expected 2, one for each predicted instance"):
        fan_of("job", runs.head(1), Empirical(history, np.zeros(2, dtype=int)), NO_PAST)
