-- The jobs of the finished runs of a log, numbered in the order of their keys, and their runs in each part of it. A
-- hash is joined on far faster than the key, and stands for it unless two jobs share one.
CREATE OR REPLACE TEMP TABLE jobs AS
WITH counted AS (
    SELECT
        group_key,
        count(*) FILTER (part = 0) AS n_first,
        count(*) FILTER (part = 1) AS n_second,
        count(*) FILTER (part = 2) AS n_third
    FROM temp.finished
    GROUP BY group_key
),
final AS (
    SELECT
        (row_number() OVER (ORDER BY group_key) - 1)::INTEGER AS group_number,
        {hash} AS key_hash,
        group_key AS job_key, n_first, n_second, n_third
    FROM counted
)
SELECT * FROM final
