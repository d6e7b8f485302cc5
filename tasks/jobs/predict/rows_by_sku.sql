-- What a list of each run says of each SKU, by the run's place among the rows of rows.sql; one listed twice is one.
WITH asked AS (
    SELECT row_number() OVER (ORDER BY coalesce(submitted_at, started_at), run_id) - 1 AS place, {list} AS ones
    FROM jobs.runs
    WHERE {is_read}
),
listed AS (
    SELECT place, UNNEST(ones) AS one FROM asked
)
SELECT place, one.sku AS sku, {figures}
FROM listed
WHERE one.sku IS NOT NULL
GROUP BY place, one.sku
