-- The totals of one source, in the columns of jobs.summaries but the parameters and the data version.
WITH groups AS (
    SELECT *, n_finished >= $min_support AS is_supported FROM jobs.groups WHERE source = $source
),
rows AS (
    SELECT
        bool_or(is_simulated) AS is_simulated,
        quantile_disc(coalesce(submitted_at, started_at, ended_at), $history_share)
            FILTER (coalesce(isfinite(runtime_s), FALSE) AND list_contains($statuses, status)) AS split_at
    FROM jobs.runs
    WHERE source = $source AND what_if IS NULL
),
totals AS (
    SELECT
        sum(n_runs)::BIGINT AS n_runs,
        sum(n_finished)::BIGINT AS n_finished,
        sum(n_failed)::BIGINT AS n_failed,
        sum(n_ongoing)::BIGINT AS n_ongoing,
        count(*) AS n_groups,
        min(first_at) AS first_at,
        max(last_at) AS last_at,
        count_if(is_supported) AS n_supported_groups,
        coalesce(sum(n_finished) FILTER (is_supported), 0)::BIGINT AS n_supported_runs,
        coalesce(sum(n_runs) FILTER (n_runs >= 2), 0) / sum(n_runs) AS recurring_share,
        coalesce(sum(n_runs) FILTER (n_runs >= 3), 0) / sum(n_runs) AS support_3_share,
        coalesce(sum(n_runs) FILTER (n_runs >= 20), 0) / sum(n_runs) AS support_20_share,
        median(cov) FILTER (is_supported) AS median_cov,
        sum(round(outlier_share_ratio * n_finished)) FILTER (is_supported)
            / sum(n_finished) FILTER (is_supported AND outlier_share_ratio IS NOT NULL) AS outlier_share_ratio,
        sum(round(outlier_share_delta * n_finished)) FILTER (is_supported)
            / sum(n_finished) FILTER (is_supported) AS outlier_share_delta,
        sum(excess_s ORDER BY excess_s) FILTER (is_supported) AS excess_s,
        coalesce(sum(n_new) FILTER (slow_share IS NOT NULL), 0)::BIGINT AS n_compared,
        sum(round(slow_share * n_new)) / sum(n_new) FILTER (slow_share IS NOT NULL) AS slow_share
    FROM groups
),
final AS (
    SELECT $source AS source, totals.*, rows.* FROM totals, rows
)
SELECT * FROM final
