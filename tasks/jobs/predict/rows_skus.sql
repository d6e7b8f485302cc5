-- The SKUs that were offered to each run, with their state just before its submission; one listed twice is one. A run
-- is known by its place among the rows of rows.sql.
WITH asked AS (
    SELECT row_number() OVER (ORDER BY coalesce(submitted_at, started_at), run_id) - 1 AS place, skus
    FROM jobs.runs
    WHERE {is_read}
),
listed AS (
    SELECT place, UNNEST(skus) AS one FROM asked
),
final AS (
    SELECT
        place,
        one.sku AS sku,
        1.0::DOUBLE AS offered,
        avg(one.load_mean) AS sku_load_mean,
        avg(one.load_sd) AS sku_load_sd,
        sum(one.free_tokens) AS sku_free_tokens
    FROM listed
    WHERE one.sku IS NOT NULL
    GROUP BY place, one.sku
)
SELECT * FROM final
