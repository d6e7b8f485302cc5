-- The starts of the runs that are looked at (place: their number) among the ends of the history of the same jobs
-- (place missing), by job and time. What ended at the moment of a start stands before it: it was known by then. What
-- was slow at the same time, from the same cause, is not history.
WITH watched AS (
    SELECT DISTINCT group_key, job FROM temp.looked_at
),
history AS (
    SELECT
        job, NULL AS place, runtime_s,
        coalesce(ended_at, started_at + to_microseconds((runtime_s * 1e6)::BIGINT)) AS known_at
    FROM jobs.runs
    JOIN watched USING (group_key)
    WHERE source = $source AND isfinite(runtime_s) AND what_if IS NULL AND list_contains($statuses, status)
),
final AS (
    SELECT job, place, runtime_s, known_at FROM history WHERE known_at IS NOT NULL
    UNION ALL
    SELECT job, place, runtime_s, started_at FROM temp.looked_at
)
SELECT job, coalesce(place, 0) AS place, runtime_s FROM final ORDER BY job, known_at, place NULLS FIRST
