-- Runs of one source that have ended or go on, the latest; what was changed on purpose is not looked at. A row knows
-- what became of its run until known_at: a running one until its file was first read, or, where that was long after all
-- that is in the log, until the last event in its file. newest_at is the last moment that the log knows of.
WITH events AS (
    SELECT batch_id, max(greatest(submitted_at, started_at, ended_at)) AS last_at
    FROM jobs.runs WHERE source = $source AND what_if IS NULL
    GROUP BY batch_id
),
known AS (
    SELECT
        batch_id,
        CASE
            WHEN ordered_at <= max(last_at) OVER () + to_microseconds(($look_back_days * 86400e6)::BIGINT)
                THEN greatest(ordered_at, last_at)
            ELSE last_at
        END AS known_at
    FROM events
    LEFT JOIN (SELECT batch_id, ordered_at FROM ops.files WHERE word = 'jobs' AND source = $source) USING (batch_id)
),
runs AS (
    SELECT
        run_id, group_key, status, started_at, runtime_s, known_at,
        coalesce(submitted_at, started_at) AS submitted_at,
        coalesce(
            ended_at, coalesce(started_at, submitted_at) + to_microseconds((runtime_s * 1e6)::BIGINT)
        ) AS ended_at
    FROM jobs.runs JOIN known USING (batch_id)
    WHERE source = $source AND what_if IS NULL
),
newest AS (
    SELECT greatest(max(ended_at), max(known_at) FILTER (status = 'running')) AS newest_at FROM runs
),
final AS (
    SELECT runs.*, newest_at
    FROM runs, newest
    WHERE submitted_at IS NOT NULL AND (
        (isfinite(runtime_s) AND list_contains($statuses, status))
        OR (status = 'running' AND runtime_s IS NULL AND started_at IS NOT NULL)
    )
    ORDER BY coalesce(ended_at, known_at) DESC, run_id
    LIMIT $most
)
SELECT * FROM final ORDER BY submitted_at, run_id
