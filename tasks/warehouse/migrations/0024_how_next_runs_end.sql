-- How the next run of a job ends, beside how long it takes if it completes; missing where no time limit says it.
ALTER TABLE jobs.predictions ADD COLUMN completes_share DOUBLE;
ALTER TABLE jobs.predictions ADD COLUMN at_limit_share DOUBLE;
ALTER TABLE jobs.predictions ADD COLUMN before_limit_share DOUBLE;
COMMENT ON COLUMN jobs.predictions.completes_share IS 'predicted probability that the next run completes; missing where runs have no time limit';
COMMENT ON COLUMN jobs.predictions.at_limit_share IS 'predicted probability that it is stopped at its time limit; the three sum to 1';
COMMENT ON COLUMN jobs.predictions.before_limit_share IS 'predicted probability that it fails or is stopped before its time limit';
