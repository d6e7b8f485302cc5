"""Medians of what came before each run: the same as one by one, and slow runs as one query over windows found them."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.params import WatchParams
from tasks.jobs.watch import slow_runs
from tasks.jobs.watch_medians import medians_between, ranked_between
from tasks.warehouse.connection import reading, transaction, writing

BY_WINDOWS = """
WITH ended AS (
    SELECT
        run_id, group_key, status, runtime_s,
        coalesce(ended_at, started_at + to_microseconds((runtime_s * 1e6)::BIGINT)) AS ended_at,
        coalesce(started_at, submitted_at) AS started_at
    FROM jobs.runs
    WHERE source = $source AND isfinite(runtime_s) AND what_if IS NULL
),
newest AS (
    SELECT max(ended_at) AS newest_at FROM ended
),
looked_at AS (
    SELECT ended.* FROM ended, newest
    WHERE list_contains($statuses, status)
        AND ended_at > newest_at - to_microseconds(($look_back_days * 86400e6)::BIGINT)
),
history AS (
    SELECT group_key, ended_at, median(runtime_s) OVER so_far AS history_median_s, count(*) OVER so_far AS n_history
    FROM ended SEMI JOIN looked_at USING (group_key)
    WHERE list_contains($history_statuses, status)
    WINDOW so_far AS (PARTITION BY group_key ORDER BY ended_at RANGE UNBOUNDED PRECEDING)
)
SELECT
    run_id, looked_at.group_key, status, looked_at.started_at, looked_at.ended_at, runtime_s,
    history_median_s, n_history
FROM looked_at
ASOF JOIN history ON looked_at.group_key = history.group_key AND looked_at.started_at >= history.ended_at
WHERE n_history >= $min_support
    AND (
        runtime_s >= $outlier_ratio * nullif(history_median_s, 0)
        OR runtime_s > history_median_s + $outlier_delta_s
    )
ORDER BY looked_at.ended_at, run_id
"""


def busy_log(n=3000):
    """Jobs of many and of few runs, that overlap and end at the same moment, of no time, without a start or an end."""
    rng = np.random.default_rng(11)
    at = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 30 * 86_400, n) // 600 * 600, unit="s")
    return pd.DataFrame({
        "run_id": [f"run {i:05}" for i in rng.permutation(n)],
        "group_key": [f"job {i}" for i in (30 * rng.random(n) ** 3).astype(int)],
        "runtime_s": np.where(rng.random(n) < 0.1, 0.0, (600 * rng.lognormal(0, 2, n)).round(-1)),
        "submitted_at": at,
        "status": rng.choice(["completed", "unknown", "timeout", "failed"], n, p=[0.6, 0.2, 0.1, 0.1]),
    })  # fmt: skip


@pytest.mark.parametrize(
    "params",
    [
        WatchParams(),
        WatchParams(look_back_days=400, min_support=1, outlier_ratio=1.01, outlier_delta_s=1e-9),
        WatchParams(look_back_days=20, outlier_ratio=2, statuses=("failed",), history_statuses=("timeout", "failed")),
    ],
    ids=["usual", "nearly all", "failures"],
)
def test_slow_runs_are_those_of_a_median_over_windows(job_log, params):
    warehouse = job_log(busy_log())
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("UPDATE jobs.runs SET ended_at = NULL WHERE run_id LIKE '%7'")
        connection.execute("UPDATE jobs.runs SET started_at = NULL WHERE run_id LIKE '%3' OR run_id LIKE '%77'")
        connection.execute("UPDATE jobs.runs SET submitted_at = NULL WHERE run_id LIKE '%33'")
    with reading(warehouse) as connection:
        expected = connection.execute(BY_WINDOWS, {"source": "log", **params.model_dump(mode="json")}).df()
        found = slow_runs(connection, "log", params)
    assert len(expected) > 10
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_ranks_within_stretches_worked_out_by_hand():
    values = np.array([5.0, 1, 4, 1, 3])
    lows, highs = np.array([0, 0, 1, 2, 0, 3]), np.array([5, 1, 4, 4, 3, 5])
    # sorted: 1 1 3 4 5; 5; 1 1 4; 1 4; 1 4 5; 1 3
    assert ranked_between(values, lows, highs, np.array([2, 0, 2, 1, 1, 0])).tolist() == [3, 5, 4, 4, 4, 1]
    assert medians_between(values, lows, highs).tolist() == [3, 5, 1, 2.5, 4, 2]


@pytest.mark.parametrize("n_distinct", [1, 2, 3, 64, 65, 10**6])
def test_medians_of_overlapping_stretches_are_those_of_each_by_itself(n_distinct):
    rng = np.random.default_rng(n_distinct)
    values = rng.integers(0, n_distinct, 700) / 7
    lows = rng.integers(0, 700, 400)
    highs = lows + 1 + (rng.random(400) * (700 - lows)).astype(int)
    expected = [np.median(values[low:high]) for low, high in zip(lows, highs, strict=True)]
    assert medians_between(values, lows, highs) == pytest.approx(expected, rel=1e-15)


def test_no_question_and_no_value_have_an_empty_answer():
    nothing = np.zeros(0, dtype=np.int64)
    assert medians_between(np.zeros(0), nothing, nothing).tolist() == []
    assert medians_between(np.ones(3), nothing, nothing).tolist() == []
