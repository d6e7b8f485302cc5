-- The cells of the runs of jobs that history (D1) does not know: each run beside the median of the runs of its job that
-- had ended before it was submitted, if there were enough; a run without such a median is in no cell.
WITH unknown AS (
    SELECT group_number, part, runtime_s, queued_at, ended_at
    FROM temp.finished
    JOIN temp.groups USING (group_key)
    WHERE median_s IS NULL
),
past AS (
    SELECT group_number, ended_at, median(runtime_s) OVER so_far AS median_s, count(*) OVER so_far AS n_before
    FROM unknown
    WHERE ended_at IS NOT NULL
    WINDOW so_far AS (PARTITION BY group_number ORDER BY ended_at RANGE UNBOUNDED PRECEDING)
),
normalised AS (
    SELECT unknown.group_number, part, {ratio} AS ratio, {delta} AS delta
    FROM unknown
    ASOF JOIN past ON unknown.group_number = past.group_number AND unknown.queued_at > past.ended_at
    WHERE n_before >= {min_before}
)
SELECT {cell} AS cell FROM normalised
