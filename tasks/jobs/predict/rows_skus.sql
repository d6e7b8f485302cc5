-- The SKUs that were offered to each run, with their state just before its submission; one listed twice is one.
SELECT
    run_id,
    sku,
    1.0 AS offered,
    avg(load_mean) AS sku_load_mean,
    avg(load_sd) AS sku_load_sd,
    sum(free_tokens) AS sku_free_tokens
FROM jobs.run_skus
WHERE source = $source AND sku IS NOT NULL AND $with_what_ifs IS NOT NULL AND $statuses IS NOT NULL
    AND ($group_key IS NULL OR run_id IN (
        SELECT run_id FROM jobs.runs WHERE source = $source AND group_key = $group_key
    ))
GROUP BY run_id, sku
