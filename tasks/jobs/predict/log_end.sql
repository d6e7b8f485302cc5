-- One microsecond after the last submission or end; a run whose log tells no end ends after its runtime.
SELECT greatest(
    max(coalesce(submitted_at, started_at)),
    max(coalesce(
        ended_at,
        coalesce(started_at, submitted_at) + to_microseconds(round(runtime_s * 1e6)::BIGINT),
        started_at
    ))
) + INTERVAL 1 MICROSECOND
FROM jobs.runs
WHERE source = $source
    AND what_if IS NULL
    AND coalesce(submitted_at, started_at) IS NOT NULL
