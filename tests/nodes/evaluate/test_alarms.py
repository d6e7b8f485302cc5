"""Budgets of false alarms, by hand."""

import numpy as np
import pandas as pd

from tasks.nodes.evaluate.alarms import COLUMNS, budget_figures, thresholds_by_budget
from tasks.nodes.params import AlarmParams, EvaluateParams, InjectionParams

PARAMS = EvaluateParams(injection=InjectionParams(alarm=AlarmParams(flagged=2, last=2, min_executions=2, clear=1)))
HOUR = pd.Timedelta(hours=1)


def executions_of(n, *, node="n", aspect="cpu", stressed=(), level=0, dose=""):
    """n executions of one node and aspect, an hour apart."""
    is_stressed = np.isin(np.arange(n), stressed)
    return pd.DataFrame({
        "execution_id": [f"c-{at + 1:04}-{node}" for at in range(n)], "node": node, "aspect": aspect,
        "benchmark": "b", "template_hash": "",
        "started_at": pd.Timestamp("2026-01-01") + np.arange(n) * HOUR, "status": "completed",
        "is_stressed": pd.array(is_stressed, dtype="boolean"), "is_contaminated": False,
        "dose": dose, "dose_level": pd.array(np.where(is_stressed, level, 0), dtype="Int64"),
    })  # fmt: skip


def judged_by(flags, *, protocol="rolling"):
    flags = np.array(flags, dtype=bool)
    about = {"protocol": protocol, "round": 0, "detector": "detector"}
    return pd.DataFrame({**about, "execution": np.arange(len(flags)), "score": flags * 1.0, "is_flagged": flags})


def test_stated_and_measured_alarms_are_counted_over_calm_executions():
    """24 executions a day, of which one in eight was to raise an alarm; two of eight calm ones do."""
    thresholds = pd.DataFrame([["rolling", 0, "detector", "3", 0.5, 1 / 8, 24.0]], columns=COLUMNS)
    executions = executions_of(9, stressed=[8], level=2)
    figures = budget_figures(executions, judged_by([0, 1, 1, 0, 0, 1, 1, 0, 1]), thresholds, PARAMS)
    of = "detector.rolling.at_3"
    assert [figures[f"budget.{name}.{of}"] for name in ("stated_per_day", "measured_per_day")] == [3, 6]
    assert (figures[f"budget.ratio.{of}"], figures[f"budget.n_alarms.{of}"]) == (2, 2)
    assert figures[f"budget.delay_executions.{of}.dose_2"] == 2 and figures[f"budget.missed.{of}.dose_2"] == 0
    assert figures["budget.of"] == of and figures["budget.ratio"] == 2


def test_a_dose_that_is_never_flagged_raises_no_alarm():
    thresholds = pd.DataFrame([["rolling", 0, "detector", "3", 0.5, 1 / 8, 24.0]], columns=COLUMNS)
    figures = budget_figures(executions_of(4, stressed=[3], level=1), judged_by([0, 0, 0, 0]), thresholds, PARAMS)
    key = "budget.delay_executions.detector.rolling.at_3.dose_1"
    assert figures[key] is None and figures[f"{key}.reason"]
    assert figures["budget.missed.detector.rolling.at_3.dose_1"] == 1


def test_a_larger_budget_has_a_lower_threshold_and_the_fleet_the_highest():
    rng = np.random.default_rng(0)
    params = PARAMS.model_copy(update={"budgets": (0.01, 0.1, 1.0)})
    rows = thresholds_by_budget(executions_of(2000), rng.normal(size=2000), np.ones(2000, dtype=bool), params)
    thresholds = {row["budget"]: row["threshold"] for row in rows}
    assert thresholds["fleet"] > thresholds["0_01"] > thresholds["0_1"] > thresholds["1"]
