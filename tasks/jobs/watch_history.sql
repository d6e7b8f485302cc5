-- Finished runs of some jobs, by job and by end: what a run of theirs may know is what ended before its submission.
WITH ended AS (
    SELECT
        group_key, runtime_s,
        coalesce(ended_at, coalesce(started_at, submitted_at) + to_microseconds((runtime_s * 1e6)::BIGINT)) AS ended_at
    FROM jobs.runs
    WHERE source = $source AND list_contains($group_keys, group_key) AND list_contains($statuses, status)
        AND isfinite(runtime_s) AND what_if IS NULL
),
final AS (
    SELECT * FROM ended WHERE ended_at IS NOT NULL
)
SELECT * FROM final ORDER BY group_key, ended_at, runtime_s
