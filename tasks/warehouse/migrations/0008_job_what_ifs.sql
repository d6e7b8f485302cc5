-- What would follow from a change, as a model predicts it, and what was measured of it (Zhu et al. 2023, section 7).
CREATE TABLE jobs.what_ifs (
    source TEXT NOT NULL,
    scenario TEXT NOT NULL,
    measure TEXT NOT NULL,
    model_id TEXT NOT NULL,
    edits TEXT NOT NULL,
    before DOUBLE,
    after DOUBLE,
    change DOUBLE,
    low DOUBLE,
    high DOUBLE,
    n_runs BIGINT NOT NULL,
    n_jobs BIGINT NOT NULL,
    reason TEXT,
    parameters TEXT NOT NULL,
    PRIMARY KEY (source, scenario, measure)
);
COMMENT ON TABLE jobs.what_ifs IS 'Predicted effect of a change of the features of held-out runs: mean of each measure over the runs';
COMMENT ON COLUMN jobs.what_ifs.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.what_ifs.scenario IS 'no_spare, newest_sku, steady_load, even_load, or the changes as they were asked for';
COMMENT ON COLUMN jobs.what_ifs.measure IS 'outlier_share, gap, p95, sd, median_s, mean_s, token_s or money; _s: in seconds, _ratio: over the historic median';
COMMENT ON COLUMN jobs.what_ifs.model_id IS 'model that predicts, in ops.models';
COMMENT ON COLUMN jobs.what_ifs.edits IS 'the changes, one after the other, as the command line takes them';
COMMENT ON COLUMN jobs.what_ifs.before IS 'mean over the runs as they are; unit as measure says';
COMMENT ON COLUMN jobs.what_ifs.after IS 'mean over the same runs with the change made';
COMMENT ON COLUMN jobs.what_ifs.change IS 'after minus before';
COMMENT ON COLUMN jobs.what_ifs.low IS 'lower end of the interval of the change over jobs; holds nothing of the model''s own error';
COMMENT ON COLUMN jobs.what_ifs.high IS 'upper end of that interval';
COMMENT ON COLUMN jobs.what_ifs.n_runs IS 'held-out runs that the means are over';
COMMENT ON COLUMN jobs.what_ifs.n_jobs IS 'their jobs';
COMMENT ON COLUMN jobs.what_ifs.reason IS 'why there is no figure, or no interval';
COMMENT ON COLUMN jobs.what_ifs.parameters IS 'JSON of the parameters';

CREATE TABLE jobs.what_if_moves (
    source TEXT NOT NULL,
    scenario TEXT NOT NULL,
    kind TEXT NOT NULL,
    from_shape INTEGER NOT NULL,
    to_shape INTEGER NOT NULL,
    model_id TEXT NOT NULL,
    n_runs BIGINT NOT NULL,
    n_jobs BIGINT NOT NULL,
    share DOUBLE,
    PRIMARY KEY (source, scenario, kind, from_shape, to_shape)
);
COMMENT ON TABLE jobs.what_if_moves IS 'Migration between shapes under a change: one row for each pair of shapes that any run or job has before and after';
COMMENT ON COLUMN jobs.what_if_moves.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.what_if_moves.scenario IS 'as in jobs.what_ifs';
COMMENT ON COLUMN jobs.what_if_moves.kind IS 'ratio or delta, as in jobs.shapes';
COMMENT ON COLUMN jobs.what_if_moves.from_shape IS 'number of the most probable shape before the change, of the shapes of the model';
COMMENT ON COLUMN jobs.what_if_moves.to_shape IS 'number of the most probable shape after it; the same: not moved';
COMMENT ON COLUMN jobs.what_if_moves.model_id IS 'model that predicts, in ops.models';
COMMENT ON COLUMN jobs.what_if_moves.n_runs IS 'runs with these two shapes';
COMMENT ON COLUMN jobs.what_if_moves.n_jobs IS 'jobs whose runs, taken together, have these two shapes';
COMMENT ON COLUMN jobs.what_if_moves.share IS 'n_jobs over the jobs that were in from_shape; missing if there was none';

CREATE TABLE jobs.what_if_pairs (
    source TEXT NOT NULL,
    scenario TEXT NOT NULL,
    model_id TEXT NOT NULL,
    n_pairs BIGINT NOT NULL,
    n_jobs BIGINT NOT NULL,
    mean_measured DOUBLE,
    mean_predicted DOUBLE,
    right_share DOUBLE,
    low DOUBLE,
    high DOUBLE,
    right_share_mean_change DOUBLE,
    mae_log_model DOUBLE,
    mae_log_no_change DOUBLE,
    mae_log_mean_change DOUBLE,
    mae_log_noise DOUBLE,
    correlation DOUBLE,
    reason TEXT,
    PRIMARY KEY (source, scenario)
);
COMMENT ON TABLE jobs.what_if_pairs IS 'Predicted beside measured change of the runs that were done again with the change, each against its unchanged repetition';
COMMENT ON COLUMN jobs.what_if_pairs.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.what_if_pairs.scenario IS 'as in jobs.what_ifs';
COMMENT ON COLUMN jobs.what_if_pairs.model_id IS 'model that predicts, in ops.models';
COMMENT ON COLUMN jobs.what_if_pairs.n_pairs IS 'pairs with a measured and a predicted change; 0 with a reason';
COMMENT ON COLUMN jobs.what_if_pairs.n_jobs IS 'their jobs';
COMMENT ON COLUMN jobs.what_if_pairs.mean_measured IS 'mean log of the runtime with the change over that without it, as measured';
COMMENT ON COLUMN jobs.what_if_pairs.mean_predicted IS 'the same of the predicted median runtimes';
COMMENT ON COLUMN jobs.what_if_pairs.right_share IS 'share of pairs whose direction was predicted right, of those that changed by at least the dead band';
COMMENT ON COLUMN jobs.what_if_pairs.low IS 'lower end of the Wilson interval of right_share';
COMMENT ON COLUMN jobs.what_if_pairs.high IS 'upper end of that interval';
COMMENT ON COLUMN jobs.what_if_pairs.right_share_mean_change IS 'right_share if each pair went as the mean of other jobs';
COMMENT ON COLUMN jobs.what_if_pairs.mae_log_model IS 'mean absolute error of the predicted log ratio';
COMMENT ON COLUMN jobs.what_if_pairs.mae_log_no_change IS 'the same if no change is predicted';
COMMENT ON COLUMN jobs.what_if_pairs.mae_log_mean_change IS 'the same if the mean change of other jobs is predicted; missing for one job';
COMMENT ON COLUMN jobs.what_if_pairs.mae_log_noise IS 'mean absolute log ratio of two runs with nothing changed on purpose';
COMMENT ON COLUMN jobs.what_if_pairs.correlation IS 'Pearson correlation of predicted and measured log ratios';
COMMENT ON COLUMN jobs.what_if_pairs.reason IS 'why there is no pair, or no figure';

CREATE TABLE jobs.what_if_claims (
    source TEXT NOT NULL,
    scenario TEXT NOT NULL,
    about TEXT NOT NULL,
    place INTEGER NOT NULL,
    model_id TEXT NOT NULL,
    claim TEXT NOT NULL,
    PRIMARY KEY (source, scenario, about, place)
);
COMMENT ON TABLE jobs.what_if_claims IS 'What follows from a change in sentences, and what must not be concluded';
COMMENT ON COLUMN jobs.what_if_claims.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.what_if_claims.scenario IS 'as in jobs.what_ifs';
COMMENT ON COLUMN jobs.what_if_claims.about IS 'can: what the figures support; cannot: what they do not; move_ratio, move_delta: moves between shapes';
COMMENT ON COLUMN jobs.what_if_claims.place IS 'place of the sentence, from 0';
COMMENT ON COLUMN jobs.what_if_claims.model_id IS 'model that predicts, in ops.models';
COMMENT ON COLUMN jobs.what_if_claims.claim IS 'the sentence, in English';
