-- Runs of one source that ended in the last days of its log, with a number for each run and each of their jobs.
CREATE OR REPLACE TEMP TABLE looked_at AS
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
final AS (
    SELECT ended.*, row_number() OVER () AS place, dense_rank() OVER (ORDER BY group_key) AS job
    FROM ended, newest
    WHERE list_contains($statuses, status) AND started_at IS NOT NULL
        AND ended_at > newest_at - to_microseconds(($look_back_days * 86400e6)::BIGINT)
)
SELECT * FROM final
