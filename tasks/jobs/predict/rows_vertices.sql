-- On how many of its vertices each SKU worked for each run.
SELECT run_id, sku, count(*)::DOUBLE AS vertices
FROM jobs.vertices
WHERE source = $source AND sku IS NOT NULL AND $with_what_ifs IS NOT NULL AND $statuses IS NOT NULL
GROUP BY run_id, sku
