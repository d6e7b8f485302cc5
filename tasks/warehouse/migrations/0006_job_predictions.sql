-- The next run of each job as the champion predicts it, and the figures of each trained model.
CREATE TABLE jobs.predictions (
    source TEXT NOT NULL,
    group_key TEXT NOT NULL,
    model_id TEXT NOT NULL,
    predicted_at TIMESTAMP NOT NULL,
    data_version TEXT NOT NULL,
    n_before BIGINT NOT NULL,
    last_at TIMESTAMP NOT NULL,
    usual_s DOUBLE NOT NULL,
    p05_s DOUBLE NOT NULL,
    p25_s DOUBLE NOT NULL,
    p50_s DOUBLE NOT NULL,
    p75_s DOUBLE NOT NULL,
    p90_s DOUBLE NOT NULL,
    p95_s DOUBLE NOT NULL,
    p99_s DOUBLE NOT NULL,
    exceeds_2x_share DOUBLE,
    expected_excess_s DOUBLE NOT NULL,
    shape_ratio INTEGER,
    shape_delta INTEGER,
    PRIMARY KEY (source, group_key)
);
COMMENT ON TABLE jobs.predictions IS 'The next run of each job of a source, as the model in use predicts it; written anew as a whole';
COMMENT ON COLUMN jobs.predictions.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.predictions.group_key IS 'the recurring job';
COMMENT ON COLUMN jobs.predictions.model_id IS 'the model that predicted, in ops.models';
COMMENT ON COLUMN jobs.predictions.predicted_at IS 'moment that the run is predicted for: just after the last submission or end in the log, UTC';
COMMENT ON COLUMN jobs.predictions.data_version IS 'hash over the files of the source that the prediction knew';
COMMENT ON COLUMN jobs.predictions.n_before IS 'finished runs of the job so far';
COMMENT ON COLUMN jobs.predictions.last_at IS 'submission of the last of them, UTC';
COMMENT ON COLUMN jobs.predictions.usual_s IS 'their median runtime, in seconds';
COMMENT ON COLUMN jobs.predictions.p05_s IS 'predicted 5 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.predictions.p25_s IS 'predicted 25 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.predictions.p50_s IS 'predicted median of the runtime, in seconds';
COMMENT ON COLUMN jobs.predictions.p75_s IS 'predicted 75 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.predictions.p90_s IS 'predicted 90 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.predictions.p95_s IS 'predicted 95 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.predictions.p99_s IS 'predicted 99 % quantile of the runtime, in seconds';
COMMENT ON COLUMN jobs.predictions.exceeds_2x_share IS 'probability (0 to 1) that it takes twice usual_s or longer; missing where usual_s is 0';
COMMENT ON COLUMN jobs.predictions.expected_excess_s IS 'expected time beyond usual_s: the mean of runtime - usual_s, a shorter run counting as 0, in seconds';
COMMENT ON COLUMN jobs.predictions.shape_ratio IS 'most probable shape of the model, of ratios, from 0, by rising 25 % to 75 % gap; missing where none could be learnt';
COMMENT ON COLUMN jobs.predictions.shape_delta IS 'the same of deltas';

CREATE TABLE jobs.model_figures (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    key TEXT NOT NULL,
    value DOUBLE,
    reason TEXT,
    PRIMARY KEY (source, model_id, key)
);
COMMENT ON TABLE jobs.model_figures IS 'What each training measured on the runs that it held out, beside its baselines';
COMMENT ON COLUMN jobs.model_figures.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.model_figures.model_id IS 'the model, in ops.models';
COMMENT ON COLUMN jobs.model_figures.key IS 'name of the figure, <part>.<measure>[.<slice>], with its unit in tasks/jobs/README.md';
COMMENT ON COLUMN jobs.model_figures.value IS 'the figure; missing where it cannot be had';
COMMENT ON COLUMN jobs.model_figures.reason IS 'why it is missing; missing beside a figure';
