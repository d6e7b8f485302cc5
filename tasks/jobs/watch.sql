-- Runs of one source that ended in the last days of its log and were slow against the runs of the same job that had
-- ended before they started: what was slow at the same time, from the same cause, is not their history.
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
    SELECT ended.*
    FROM ended, newest
    WHERE list_contains($statuses, status)
        AND ended_at > newest_at - to_microseconds(($look_back_days * 86400e6)::BIGINT)
),
history AS (
    SELECT
        group_key,
        ended_at,
        median(runtime_s) OVER so_far AS history_median_s,
        count(*) OVER so_far AS n_history
    FROM ended
    SEMI JOIN looked_at USING (group_key)
    WHERE list_contains($history_statuses, status)
    WINDOW so_far AS (PARTITION BY group_key ORDER BY ended_at RANGE UNBOUNDED PRECEDING)
),
final AS (
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
)
SELECT * FROM final ORDER BY ended_at, run_id
