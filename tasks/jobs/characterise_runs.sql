-- Finished runs of one source, as rows.sql has them, and the part of the log that each is in: 0, 1, 2 for D1, D2,
-- D3. The part is that of predict/periods.py: recorded periods by name; a run without one, or a log without periods,
-- by time. Values come from the variables of the connection, so that a query may stream.
CREATE OR REPLACE TEMP VIEW finished AS
SELECT
    group_key, runtime_s, ended_at, period, submitted_at,
    coalesce(submitted_at, started_at) AS queued_at,
    CASE
        WHEN period = getvariable('first_name') THEN 0
        WHEN period = getvariable('second_name') THEN 1
        WHEN getvariable('first_name') IS NOT NULL AND period IS NOT NULL THEN 2
        WHEN queued_at < getvariable('second_at') THEN 0
        WHEN queued_at < getvariable('third_at') THEN 1
        ELSE 2
    END::UTINYINT AS part
FROM jobs.runs
WHERE source = getvariable('source')
    AND isfinite(runtime_s)
    AND list_contains(getvariable('statuses'), status)
    AND what_if IS NULL
    AND coalesce(submitted_at, started_at) IS NOT NULL
