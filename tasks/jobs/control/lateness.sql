-- Of each job: how often it runs, and whether it is idle far beyond its rhythm.
WITH runs AS (
    SELECT group_key, coalesce(submitted_at, started_at) AS submitted_at FROM jobs.runs
    WHERE source = $source AND what_if IS NULL AND coalesce(submitted_at, started_at) IS NOT NULL
),
gaps AS (
    SELECT
        group_key, submitted_at,
        epoch(submitted_at - lag(submitted_at) OVER (PARTITION BY group_key ORDER BY submitted_at)) AS gap_s,
        row_number() OVER (PARTITION BY group_key ORDER BY submitted_at DESC) AS place
    FROM runs
),
rhythm AS (
    SELECT
        group_key, max(submitted_at) AS newest_at, max(gap_s) FILTER (place <= $gaps) AS longest_gap_s,
        nullif(count(*) - 1, 0) * 86400 / greatest(
            epoch(max(submitted_at) - min(submitted_at)),  -- a burst is none of a day: three runs of one minute are few
            least((SELECT epoch(max(submitted_at) - min(submitted_at)) FROM runs), 86400)
        ) AS runs_per_day
    FROM gaps GROUP BY group_key
),
final AS (
    SELECT
        group_key, runs_per_day,
        coalesce(epoch($now::TIMESTAMP - newest_at) > greatest($idle * longest_gap_s, 86400), FALSE) AS is_idle
    FROM rhythm
)
SELECT * FROM final
