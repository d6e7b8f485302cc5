-- Runs of one source that go on, or that ended shortly before the last moment that the log knows of, have lasted for
-- some time, and were not told of yet. A row knows what became of its run until known_at: a running one until its file
-- was first read, or, where that was long after all that is in the log, until the last event in its file.
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
    FROM events JOIN (SELECT batch_id, ordered_at FROM ops.files WHERE word = 'jobs' AND source = $source) USING (batch_id)
),
told AS (
    SELECT subject AS run_id FROM ops.alarms
    WHERE word = 'jobs' AND source = $source AND list_contains($kinds, kind)
),
runs AS (
    SELECT
        run_id, group_key, status, started_at, ended_at, runtime_s, known_at,
        coalesce(submitted_at, started_at) AS submitted_at,
        started_at + to_microseconds((runtime_s * 1e6)::BIGINT) AS seen_end_at,
        (SELECT max(known_at) FROM known) AS newest_at
    FROM jobs.runs JOIN known USING (batch_id) ANTI JOIN told USING (run_id)
    WHERE source = $source AND what_if IS NULL AND started_at IS NOT NULL
),
running AS (
    SELECT * EXCLUDE (seen_end_at) FROM runs
    WHERE status = 'running' AND runtime_s IS NULL
        AND started_at <= known_at - to_microseconds(($min_over_s * 1e6)::BIGINT)
),
ended AS (
    SELECT * EXCLUDE (seen_end_at) REPLACE (newest_at AS known_at) FROM runs
    WHERE isfinite(runtime_s) AND list_contains($statuses, status) AND runtime_s >= $min_over_s
        AND seen_end_at >= newest_at - to_microseconds(($finished_within_s * 1e6)::BIGINT)
),
final AS (
    SELECT * FROM running UNION ALL SELECT * FROM ended
)
SELECT * FROM final ORDER BY submitted_at, run_id
