-- What is usual for each feature is read where a run is explained; nothing reads this table.
DROP TABLE jobs.usual_values;
