-- What the summary of a job log says: one row a recurring job, one row a source.
CREATE TABLE jobs.groups (
    source TEXT NOT NULL,
    group_key TEXT NOT NULL,
    n_runs BIGINT NOT NULL,
    n_finished BIGINT NOT NULL,
    n_failed BIGINT NOT NULL,
    n_cancelled BIGINT NOT NULL,
    n_ongoing BIGINT NOT NULL,
    first_at TIMESTAMP NOT NULL,
    last_at TIMESTAMP NOT NULL,
    median_s DOUBLE,
    mean_s DOUBLE,
    std_s DOUBLE,
    cov DOUBLE,
    p05_s DOUBLE,
    p25_s DOUBLE,
    p75_s DOUBLE,
    p95_s DOUBLE,
    max_s DOUBLE,
    outlier_share_ratio DOUBLE,
    outlier_share_delta DOUBLE,
    excess_s DOUBLE,
    median_wait_s DOUBLE,
    n_history BIGINT NOT NULL,
    history_median_s DOUBLE,
    history_cov DOUBLE,
    n_new BIGINT NOT NULL,
    new_cov DOUBLE,
    slow_share DOUBLE,
    PRIMARY KEY (source, group_key)
);
COMMENT ON TABLE jobs.groups IS 'Recurring jobs: statistics of their runs, made by the summary of a source';
COMMENT ON COLUMN jobs.groups.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.groups.group_key IS 'the recurring job: normalised name and plan signature';
COMMENT ON COLUMN jobs.groups.n_runs IS 'runs of the job, whatever became of them';
COMMENT ON COLUMN jobs.groups.n_finished IS 'runs with a counted status and a runtime: the support of all statistics here';
COMMENT ON COLUMN jobs.groups.n_failed IS 'runs that failed or ran into their time limit';
COMMENT ON COLUMN jobs.groups.n_cancelled IS 'runs that were cancelled';
COMMENT ON COLUMN jobs.groups.n_ongoing IS 'runs that have not ended: running or pending';
COMMENT ON COLUMN jobs.groups.first_at IS 'first submission (start where it is missing), UTC';
COMMENT ON COLUMN jobs.groups.last_at IS 'last submission (start where it is missing), UTC';
COMMENT ON COLUMN jobs.groups.median_s IS 'median runtime of the finished runs, in seconds';
COMMENT ON COLUMN jobs.groups.mean_s IS 'mean runtime, in seconds';
COMMENT ON COLUMN jobs.groups.std_s IS 'sample standard deviation of the runtime, in seconds; missing for one run';
COMMENT ON COLUMN jobs.groups.cov IS 'coefficient of variation std_s / mean_s, a ratio; missing where the mean is 0';
COMMENT ON COLUMN jobs.groups.p05_s IS '5 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.groups.p25_s IS '25 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.groups.p75_s IS '75 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.groups.p95_s IS '95 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.groups.max_s IS 'longest runtime, in seconds';
COMMENT ON COLUMN jobs.groups.outlier_share_ratio IS 'share of runs at least 10 times (parameter) the median; missing where the median is 0';
COMMENT ON COLUMN jobs.groups.outlier_share_delta IS 'share of runs more than 900 s (parameter) above the median';
COMMENT ON COLUMN jobs.groups.excess_s IS 'waiting caused by variation: seconds that runs took beyond the median, summed';
COMMENT ON COLUMN jobs.groups.median_wait_s IS 'median wait from submission to start, in seconds';
COMMENT ON COLUMN jobs.groups.n_history IS 'finished runs in the historic part of the log';
COMMENT ON COLUMN jobs.groups.history_median_s IS 'median runtime of the historic runs, in seconds; missing below the minimum support';
COMMENT ON COLUMN jobs.groups.history_cov IS 'coefficient of variation of the historic runs, a ratio; missing below the minimum support';
COMMENT ON COLUMN jobs.groups.n_new IS 'finished runs after the historic part of the log';
COMMENT ON COLUMN jobs.groups.new_cov IS 'coefficient of variation of the new runs, a ratio; missing below the minimum support';
COMMENT ON COLUMN jobs.groups.slow_share IS 'share of new runs at least 3 times (parameter) history_median_s: the stalagmite of Figure 4';

CREATE TABLE jobs.summaries (
    source TEXT PRIMARY KEY,
    data_version TEXT NOT NULL,
    parameters TEXT NOT NULL,
    is_simulated BOOLEAN NOT NULL,
    n_runs BIGINT NOT NULL,
    n_finished BIGINT NOT NULL,
    n_failed BIGINT NOT NULL,
    n_ongoing BIGINT NOT NULL,
    n_groups BIGINT NOT NULL,
    first_at TIMESTAMP NOT NULL,
    last_at TIMESTAMP NOT NULL,
    n_supported_groups BIGINT NOT NULL,
    n_supported_runs BIGINT NOT NULL,
    recurring_share DOUBLE NOT NULL,
    support_3_share DOUBLE NOT NULL,
    support_20_share DOUBLE NOT NULL,
    median_cov DOUBLE,
    outlier_share_ratio DOUBLE,
    outlier_share_delta DOUBLE,
    excess_s DOUBLE,
    split_at TIMESTAMP,
    n_compared BIGINT NOT NULL,
    slow_share DOUBLE
);
COMMENT ON TABLE jobs.summaries IS 'The summary of each source: what jobs.groups was made from, and its totals';
COMMENT ON COLUMN jobs.summaries.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.summaries.data_version IS 'hash over the files of the source that the summary saw';
COMMENT ON COLUMN jobs.summaries.parameters IS 'JSON of the parameters';
COMMENT ON COLUMN jobs.summaries.is_simulated IS 'true if the runs were drawn, not measured';
COMMENT ON COLUMN jobs.summaries.n_runs IS 'runs of the source, whatever became of them';
COMMENT ON COLUMN jobs.summaries.n_finished IS 'runs with a counted status and a runtime';
COMMENT ON COLUMN jobs.summaries.n_failed IS 'runs that failed or ran into their time limit';
COMMENT ON COLUMN jobs.summaries.n_ongoing IS 'runs that have not ended';
COMMENT ON COLUMN jobs.summaries.n_groups IS 'jobs, also those that ran once';
COMMENT ON COLUMN jobs.summaries.first_at IS 'first submission (start where it is missing), UTC';
COMMENT ON COLUMN jobs.summaries.last_at IS 'last submission (start where it is missing), UTC';
COMMENT ON COLUMN jobs.summaries.n_supported_groups IS 'jobs with at least the minimum support of finished runs';
COMMENT ON COLUMN jobs.summaries.n_supported_runs IS 'finished runs of those jobs';
COMMENT ON COLUMN jobs.summaries.recurring_share IS 'share of runs whose job ran at least twice';
COMMENT ON COLUMN jobs.summaries.support_3_share IS 'share of runs whose job ran at least 3 times';
COMMENT ON COLUMN jobs.summaries.support_20_share IS 'share of runs whose job ran at least 20 times';
COMMENT ON COLUMN jobs.summaries.median_cov IS 'median over the supported jobs of the coefficient of variation, a ratio';
COMMENT ON COLUMN jobs.summaries.outlier_share_ratio IS 'share of the supported runs at least 10 times (parameter) the median of their job';
COMMENT ON COLUMN jobs.summaries.outlier_share_delta IS 'share of the supported runs more than 900 s (parameter) above the median of their job';
COMMENT ON COLUMN jobs.summaries.excess_s IS 'seconds that the supported runs took beyond the median of their job, summed';
COMMENT ON COLUMN jobs.summaries.split_at IS 'last submission of the historic part of the log, UTC';
COMMENT ON COLUMN jobs.summaries.n_compared IS 'new runs whose job has a historic median: the runs of Figure 4(a)';
COMMENT ON COLUMN jobs.summaries.slow_share IS 'share of those at least 3 times (parameter) the historic median';
