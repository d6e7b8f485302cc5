"""Halves of a recording, and limits that are lowered for good, by hand."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.nodes.params import AlarmParams, EvaluateParams, InjectionParams
from tests.studies import nodes_third_campaign as study


def executions_of(n, *, aspect="cpu", dose=""):
    """n executions of one node and aspect, an hour apart."""
    return pd.DataFrame({
        "execution_id": [f"c-{at + 1:04}-n" for at in range(n)], "node": "n", "aspect": aspect, "dose": dose,
        "started_at": pd.Timestamp("2026-01-01") + np.arange(n) * pd.Timedelta(hours=1), "status": "completed",
        "is_stressed": pd.array(np.zeros(n, dtype=bool), dtype="boolean"), "is_contaminated": False,
    })  # fmt: skip


def test_halves_are_the_even_and_the_odd_stretches_of_the_plan():
    executions = executions_of(40)
    reported = study.is_of_half(executions, "reported")
    assert np.flatnonzero(reported).tolist() == list(range(18, 36))
    np.testing.assert_array_equal(study.is_of_half(executions, "development"), ~reported)
    with pytest.raises(BadInput, match="no number of a recorded plan"):
        study.is_of_half(executions.assign(execution_id="run"), "reported")


@pytest.mark.parametrize(
    ("dose", "aspect", "is_lowered"),
    [("lowered-cpu-80", "cpu", True), ("two-a.lowered-cpu-80", "memory", True), ("lowered-cpu-80", "disk", False),
     ("lowered-disk-16", "disk", True), ("two-cpu", "cpu", False)],
)  # fmt: skip
def test_what_a_lowered_limit_is_of_is_told_from_all_else(dose, aspect, is_lowered):
    assert study.is_of_lowered(executions_of(1, dose=dose, aspect=aspect)).tolist() == [is_lowered]


def test_a_lowered_limit_is_judged_by_its_delay():
    """Lowered from the fourth execution on, which is flagged from its second one on; alarms before are false."""
    executions = executions_of(8)
    executions.loc[3:, "dose"] = "lowered-cpu-80"
    flags = np.array([1, 1, 0, 0, 1, 1, 1, 1], dtype=bool)
    judged = pd.DataFrame({"protocol": "transfer", "detector": "detector", "execution": range(8), "is_flagged": flags})
    alarm = AlarmParams(flagged=2, last=2, min_executions=2, clear=1)
    figures = study.lowered_figures(executions, judged, EvaluateParams(injection=InjectionParams(alarm=alarm)))
    assert figures["lowered.alarm_delay_executions.detector.n.cpu"] == 3
    assert figures["lowered.alarm_delay_seconds.detector.n.cpu"] == 2 * 3600
    assert figures["lowered.flagged_twice_executions.detector.n.cpu"] == 3
    assert figures["lowered.false_alarms_before.detector.n.cpu"] == 1
