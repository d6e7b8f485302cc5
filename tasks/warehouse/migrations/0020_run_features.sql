-- Who is charged, which part of the machine, and columns of a person's own table: what predictions may rest on.
ALTER TABLE jobs.runs ADD COLUMN account TEXT;
COMMENT ON COLUMN jobs.runs.account IS 'account or group that the run is charged to, or a pseudonym';
ALTER TABLE jobs.runs ADD COLUMN partition TEXT;
COMMENT ON COLUMN jobs.runs.partition IS 'part of the machine that the run is for, where that is not the queue';
ALTER TABLE jobs.runs ADD COLUMN qos TEXT;
COMMENT ON COLUMN jobs.runs.qos IS 'quality of service that was asked for';
ALTER TABLE jobs.runs ADD COLUMN features TEXT;
COMMENT ON COLUMN jobs.runs.features IS 'JSON object of further columns of the table that the run was read from; those that are missing are left out';
