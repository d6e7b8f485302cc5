"""The share of a node's time that watching it takes."""

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.detect.alarms import (
    machine_time,
    watching_share,
)

FIRST = pd.Timestamp("2026-01-01")


def test_six_benchmarks_of_half_a_minute_four_times_a_day_take_less_than_a_hundredth():
    """30 s · 24 / 86,400 s = 720 / 86,400 = 1 / 120."""
    assert watching_share(30.0, 24) == pytest.approx(1 / 120)


def test_the_pace_is_that_of_the_record():
    """Node a: 25 starts within 24 h are one an hour. Node b: three starts within half a day are four a day."""
    rows = [("a", hour, 30.0) for hour in range(25)] + [("b", 0, 10.0), ("b", 6, 20.0), ("b", 12, np.nan)]
    executions = pd.DataFrame(rows, columns=["node", "hour", "duration_s"]).sample(frac=1, random_state=1)
    executions = executions.assign(started_at=FIRST + pd.to_timedelta(executions["hour"], unit="h"))
    found = machine_time(executions).set_index("node")
    assert found["executions_per_day"].to_dict() == pytest.approx({"a": 24.0, "b": 4.0})
    assert found["mean_duration_s"].to_dict() == pytest.approx({"a": 30.0, "b": 15.0})
    assert found["share"].to_dict() == pytest.approx({"a": 1 / 120, "b": 60 / 86_400})
    assert found["n_executions"].tolist() == [25, 3]


def test_a_single_start_says_nothing_of_the_pace():
    rows = {"node": ["a", "b"], "started_at": [FIRST, pd.NaT], "duration_s": [2.0, 2.0]}
    found = machine_time(pd.DataFrame(rows))
    assert found["share"].isna().all() and found["mean_duration_s"].tolist() == [2.0, 2.0]


def test_no_execution_gives_no_row():
    none = pd.DataFrame({"node": ["a"], "started_at": [FIRST], "duration_s": [2.0]}).iloc[:0]
    assert machine_time(none).empty
