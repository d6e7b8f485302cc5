-- On how many of its vertices each SKU worked for each run, by its place among the rows of rows.sql.
WITH asked AS (
    SELECT row_number() OVER (ORDER BY coalesce(submitted_at, started_at), run_id) - 1 AS place, vertices
    FROM jobs.runs
    WHERE {is_read}
),
listed AS (
    SELECT place, UNNEST(vertices) AS one FROM asked
),
final AS (
    SELECT place, one.sku AS sku, count(*)::DOUBLE AS vertices
    FROM listed
    WHERE one.sku IS NOT NULL
    GROUP BY place, one.sku
)
SELECT * FROM final
