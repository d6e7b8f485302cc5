-- The runs of some jobs: the place of the job among these times three, plus the part of the log; and the runtime.
SELECT ((group_number - {first}) * 3 + part)::UINTEGER AS stretch, runtime_s
FROM temp.finished
JOIN temp.jobs ON {is_same_job}
WHERE group_number >= {first} AND group_number < {last}
