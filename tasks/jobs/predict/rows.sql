-- Runs with one of the statuses in the order in which they were submitted.
SELECT coalesce(submitted_at, started_at) AS submitted_at, operators, {columns}
FROM jobs.runs
WHERE source = $source
    AND (runtime_s IS NOT NULL OR status IN ('running', 'pending'))
    AND ($group_key IS NULL OR group_key = $group_key)
    AND list_contains($statuses, status)
    AND (what_if IS NULL OR $with_what_ifs)
    AND coalesce(submitted_at, started_at) IS NOT NULL
ORDER BY 1, run_id
