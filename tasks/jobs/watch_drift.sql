-- Finished runs of the jobs of one source that have enough of them before and since a moment of its log. Of a job that
-- an alarm for drift was raised for, only what came after that alarm: the change it told of is the job's new normal.
WITH finished AS (
    SELECT group_key, coalesce(submitted_at, started_at) AS submitted_at, runtime_s
    FROM jobs.runs
    WHERE source = $source AND list_contains($statuses, status) AND isfinite(runtime_s) AND what_if IS NULL
),
newest AS (
    SELECT max(submitted_at) AS until_at, until_at - to_microseconds(($since_days * 86400e6)::BIGINT) AS since_at
    FROM finished
),
told AS (
    SELECT
        json_extract_string(evidence, 'group_key') AS group_key,
        max(json_extract_string(evidence, 'until_at')::TIMESTAMP) AS told_at
    FROM ops.alarms
    WHERE word = 'jobs' AND source = $source AND kind = $kind
    GROUP BY 1
),
near AS (
    SELECT finished.*, until_at, since_at, submitted_at >= since_at AS is_after
    FROM newest, finished LEFT JOIN told USING (group_key)
    WHERE submitted_at >= since_at - to_microseconds(($before_days * 86400e6)::BIGINT)
        AND (told_at IS NULL OR submitted_at > told_at)
),
enough AS (
    SELECT group_key FROM near GROUP BY group_key
    HAVING count(*) FILTER (NOT is_after) >= $min_before AND count(*) FILTER (is_after) >= $min_after
),
final AS (
    SELECT group_key, submitted_at, runtime_s, until_at, since_at FROM near SEMI JOIN enough USING (group_key)
    QUALIFY row_number() OVER (
        PARTITION BY group_key, is_after ORDER BY submitted_at DESC, runtime_s DESC
    ) <= $max_runs
)
SELECT * FROM final ORDER BY group_key, submitted_at, runtime_s
