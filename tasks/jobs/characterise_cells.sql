-- The cell of each run of a job with a median in D1: its job, the part of the log, and its bin of ratios and of deltas
-- at once, packed into one number. Of one job both bins rise with the runtime, so there are few different cells.
WITH normalised AS (
    SELECT group_number, part, {ratio} AS ratio, {delta} AS delta
    FROM temp.finished
    JOIN temp.groups USING (group_key)
    WHERE median_s IS NOT NULL
)
SELECT {cell} AS cell FROM normalised
