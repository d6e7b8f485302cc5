-- One row a job, of one batch of jobs: its runs, and the exact median of those of the history (D1), if it has any.
INSERT INTO temp.medians
SELECT group_key, count(*), count_if(part = 0), median(runtime_s) FILTER (part = 0)
FROM temp.finished
WHERE {is_in_batch}
GROUP BY group_key
