-- One row a recurring job of one source, in the columns of jobs.groups.
-- What was changed on purpose (what-ifs and their replays) is no history of the job and stays out.
-- Sums run over ordered values: the same runs in another order give the same bits.
WITH runs AS (
    SELECT
        group_key, status, runtime_s, wait_s,
        coalesce(submitted_at, started_at, ended_at) AS queued_at,
        coalesce(isfinite(runtime_s), FALSE) AND list_contains($statuses, status) AS is_finished
    FROM jobs.runs
    WHERE source = $source AND what_if IS NULL
),
split AS (
    SELECT quantile_disc(queued_at, $history_share) AS split_at FROM runs WHERE is_finished
),
counts AS (
    SELECT
        group_key,
        count(*) AS n_runs,
        count_if(is_finished) AS n_finished,
        count_if(status IN ('failed', 'timeout')) AS n_failed,
        count_if(status = 'cancelled') AS n_cancelled,
        count_if(status IN ('running', 'pending')) AS n_ongoing,
        min(queued_at) AS first_at,
        max(queued_at) AS last_at,
        median(wait_s) AS median_wait_s
    FROM runs
    GROUP BY group_key
),
finished AS (
    SELECT group_key, runtime_s, queued_at <= split_at AS is_history FROM runs, split WHERE is_finished
),
scalars AS (
    SELECT
        group_key,
        median(runtime_s) AS median_s,
        avg(runtime_s ORDER BY runtime_s) AS mean_s,
        stddev_samp(runtime_s ORDER BY runtime_s) AS std_s,
        quantile_cont(runtime_s, 0.05) AS p05_s,
        quantile_cont(runtime_s, 0.25) AS p25_s,
        quantile_cont(runtime_s, 0.75) AS p75_s,
        quantile_cont(runtime_s, 0.95) AS p95_s,
        max(runtime_s) AS max_s
    FROM finished
    GROUP BY group_key
),
history AS (
    SELECT
        group_key,
        median(runtime_s) AS history_median_s,
        stddev_samp(runtime_s ORDER BY runtime_s) / nullif(avg(runtime_s ORDER BY runtime_s), 0) AS history_cov
    FROM finished
    WHERE is_history
    GROUP BY group_key
    HAVING count(*) >= $min_support
),
deviations AS (
    SELECT
        group_key,
        avg((runtime_s >= $outlier_ratio * nullif(median_s, 0))::INT) AS outlier_share_ratio,
        avg((runtime_s > median_s + $outlier_delta_s)::INT) AS outlier_share_delta,
        sum(greatest(runtime_s - median_s, 0) ORDER BY runtime_s) AS excess_s,
        count_if(is_history) AS n_history,
        count_if(NOT is_history) AS n_new,
        avg((runtime_s >= $slow_ratio * nullif(history_median_s, 0))::INT) FILTER (NOT is_history) AS slow_share
    FROM finished
    JOIN scalars USING (group_key)
    LEFT JOIN history USING (group_key)
    GROUP BY group_key
),
fresh AS (
    SELECT
        group_key,
        stddev_samp(runtime_s ORDER BY runtime_s) / nullif(avg(runtime_s ORDER BY runtime_s), 0) AS new_cov
    FROM finished
    WHERE NOT is_history
    GROUP BY group_key
    HAVING count(*) >= $min_support
),
final AS (
    SELECT
        $source AS source,
        counts.*,
        scalars.* EXCLUDE (group_key),
        std_s / nullif(mean_s, 0) AS cov,
        history.* EXCLUDE (group_key),
        deviations.* EXCLUDE (group_key, n_history, n_new),
        coalesce(n_history, 0) AS n_history,
        coalesce(n_new, 0) AS n_new,
        fresh.new_cov
    FROM counts
    LEFT JOIN scalars USING (group_key)
    LEFT JOIN history USING (group_key)
    LEFT JOIN deviations USING (group_key)
    LEFT JOIN fresh USING (group_key)
)
SELECT * FROM final ORDER BY group_key
