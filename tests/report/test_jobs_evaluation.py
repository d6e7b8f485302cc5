"""Figures of predictions: what they count, who is compared, and what they show of an empty or odd input."""

import numpy as np
import pandas as pd

from tasks.jobs.distribution import gather_history
from tasks.report.charts import spec_of
from tasks.report.jobs_evaluation import COLUMNS, calibration_figure, fan_figure, fan_rows

NOON = pd.Timestamp("2026-03-01 12:00")


def test_probabilities_that_are_right_fill_every_bar_alike_and_runs_at_the_ends_do_not():
    def bars(pit):
        [rows] = spec_of(calibration_figure(np.asarray(pit)).chart())["datasets"].values()
        return [row["share"] for row in rows]

    assert set(bars((np.arange(100) + 0.5) / 100)) == {0.05}
    assert bars([0.01, 0.99])[0] == bars([0.01, 0.99])[-1] == 0.5


def test_the_fan_of_a_prediction_holds_its_quantiles_in_order_of_submission():
    history = gather_history(np.arange(1.0, 101.0), np.zeros(100, dtype=int))
    runs = pd.DataFrame({"submitted_at": [NOON, NOON - pd.Timedelta("1h")], "runtime_s": [7.0, np.nan]})
    found = fan_rows(runs, history.rows(np.zeros(2, dtype=int)))
    assert found["submitted_at"].is_monotonic_increasing
    assert found[COLUMNS[2:]].iloc[0].tolist() == [5, 25, 50, 75, 95]
    assert found["runtime_s"].isna().tolist() == [True, False]


def test_the_share_inside_the_interval_is_of_the_runs_that_have_ended():
    at = NOON + pd.to_timedelta(np.arange(4), unit="h")
    rows = pd.DataFrame({"submitted_at": at, "runtime_s": [6.0, 30.0, 10.0, np.nan]})
    rows = rows.assign(p05_s=5.0, p25_s=8.0, p50_s=10.0, p75_s=13.0, p95_s=20.0)
    past = rows[["submitted_at", "runtime_s"]].head(2)
    found = fan_figure("job", rows, past)
    assert found.evidence == "job; n = 3 predicted runs of one job, 2 before them; the 90 % interval held 66.7 %"
    assert found.chart.args[0]["is"].tolist() == ["inside it"] * 3 + ["outside the 90 % interval"] + ["inside it"] * 2
    assert fan_figure("job", rows.head(0), past.head(0)).chart is None
