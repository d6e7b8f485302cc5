-- Runs with one of the statuses in the order in which they were submitted.
SELECT coalesce(submitted_at, started_at) AS submitted_at, operators, {columns}
FROM jobs.runs
WHERE {is_read}
ORDER BY 1, run_id
