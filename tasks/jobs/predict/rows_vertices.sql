-- On how many of its vertices each SKU worked for each run.
SELECT run_id, sku, count(*)::DOUBLE AS vertices
FROM jobs.vertices
WHERE source = $source AND sku IS NOT NULL AND $with_what_ifs IS NOT NULL AND $statuses IS NOT NULL
    AND ($group_key IS NULL OR run_id IN (
        SELECT run_id FROM jobs.runs WHERE source = $source AND group_key = $group_key
    ))
GROUP BY run_id, sku
