-- Why runs are expected to take long and jobs vary, by the model in use (Zhu et al. 2023, section 6), and its checks.
-- No primary key: unique by source, group_key, run_id, question and rank, since all rows of a source are written at once.
CREATE TABLE jobs.reasons (
    source TEXT NOT NULL,
    run_id TEXT,
    group_key TEXT NOT NULL,
    model_id TEXT NOT NULL,
    question TEXT NOT NULL,
    rank INTEGER NOT NULL,
    family TEXT NOT NULL,
    feature TEXT NOT NULL,
    value DOUBLE,
    typical DOUBLE,
    compared_with TEXT NOT NULL,
    factor DOUBLE NOT NULL,
    words TEXT NOT NULL,
    runtime_s DOUBLE,
    usual_s DOUBLE,
    expected_s DOUBLE NOT NULL
);
COMMENT ON TABLE jobs.reasons IS 'Reasons of the predictions for the longest recent runs and for the next runs of the riskiest jobs; they need not be causes';
COMMENT ON COLUMN jobs.reasons.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.reasons.run_id IS 'id of the run within its source; missing for the next run of the job';
COMMENT ON COLUMN jobs.reasons.group_key IS 'the recurring job';
COMMENT ON COLUMN jobs.reasons.model_id IS 'the model whose prediction is explained';
COMMENT ON COLUMN jobs.reasons.question IS 'runtime: why it is expected to take as long as it is; variation: why its job is expected to vary';
COMMENT ON COLUMN jobs.reasons.rank IS 'place among the reasons of the run and question, from 1, the largest change first';
COMMENT ON COLUMN jobs.reasons.family IS 'features that mean the same, such as input, load or spare tokens';
COMMENT ON COLUMN jobs.reasons.feature IS 'the feature that stands for the family';
COMMENT ON COLUMN jobs.reasons.value IS 'value of that feature, in its unit; missing if unknown';
COMMENT ON COLUMN jobs.reasons.typical IS 'what is usual for it, in its unit; missing if unknown';
COMMENT ON COLUMN jobs.reasons.compared_with IS 'whose usual value that is: the job, or all runs';
COMMENT ON COLUMN jobs.reasons.factor IS 'by which the family multiplies the expected runtime, or the odds of a variable runtime; below 1 for less';
COMMENT ON COLUMN jobs.reasons.words IS 'the reason in words, with sign, size and what is usual';
COMMENT ON COLUMN jobs.reasons.runtime_s IS 'how long the run took, in seconds; missing for the next run';
COMMENT ON COLUMN jobs.reasons.usual_s IS 'median of the earlier runs of the job, in seconds; missing without one';
COMMENT ON COLUMN jobs.reasons.expected_s IS 'runtime that the model expected, in seconds';

CREATE TABLE jobs.cause_families (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    question TEXT NOT NULL,
    family TEXT NOT NULL,
    rank INTEGER NOT NULL,
    share DOUBLE NOT NULL,
    typical_factor DOUBLE NOT NULL,
    first_share DOUBLE,
    n_runs BIGINT NOT NULL,
    n_long BIGINT NOT NULL,
    PRIMARY KEY (source, question, family)
);
COMMENT ON TABLE jobs.cause_families IS 'How much each family of features counts in the predictions for the held-out runs of a source';
COMMENT ON COLUMN jobs.cause_families.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.cause_families.model_id IS 'the model whose predictions are explained';
COMMENT ON COLUMN jobs.cause_families.question IS 'runtime: the expected runtime; ratio, delta: whether the job has one of the variable shapes of that kind';
COMMENT ON COLUMN jobs.cause_families.family IS 'features that mean the same, such as input, load or spare tokens';
COMMENT ON COLUMN jobs.cause_families.rank IS 'place of the family by share, from 1';
COMMENT ON COLUMN jobs.cause_families.share IS 'share in the mean absolute SHAP values; they sum to 1 over the families of a question';
COMMENT ON COLUMN jobs.cause_families.typical_factor IS 'by how much the family multiplies or divides the runtime, or the odds, of a run on average: at least 1';
COMMENT ON COLUMN jobs.cause_families.first_share IS 'share of the long runs whose first reason to be longer it is; missing for shapes, and without long runs';
COMMENT ON COLUMN jobs.cause_families.n_runs IS 'held-out runs behind the row';
COMMENT ON COLUMN jobs.cause_families.n_long IS 'those that took at least twice the usual time of their job';

CREATE TABLE jobs.cause_checks (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    order_name TEXT NOT NULL,
    cause TEXT NOT NULL,
    mrr DOUBLE NOT NULL,
    low DOUBLE,
    high DOUBLE,
    n BIGINT NOT NULL,
    PRIMARY KEY (source, order_name, cause)
);
COMMENT ON TABLE jobs.cause_checks IS 'How high the recorded cause of held-out long runs stands among their reasons, beside orders that look at no run';
COMMENT ON COLUMN jobs.cause_checks.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.cause_checks.model_id IS 'the model whose reasons are checked';
COMMENT ON COLUMN jobs.cause_checks.order_name IS 'reasons: of each run; random; importance, frequency: one order for all, from the training runs';
COMMENT ON COLUMN jobs.cause_checks.cause IS 'all; even: mean over causes; or runs with this recorded cause only';
COMMENT ON COLUMN jobs.cause_checks.mrr IS 'mean reciprocal rank: 1 if the recorded cause is always the first reason';
COMMENT ON COLUMN jobs.cause_checks.low IS 'lower end of the 95 % interval over jobs: of mrr for reasons, of the lead of reasons for other orders; missing if not known';
COMMENT ON COLUMN jobs.cause_checks.high IS 'upper end of that interval';
COMMENT ON COLUMN jobs.cause_checks.n IS 'runs with a recorded cause of which the features can tell';

CREATE TABLE jobs.insights (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    insight TEXT NOT NULL,
    rank INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    rho DOUBLE,
    low DOUBLE,
    high DOUBLE,
    measured_verdict TEXT,
    measured_rho DOUBLE,
    measured_low DOUBLE,
    measured_high DOUBLE,
    n_runs BIGINT NOT NULL,
    reason TEXT,
    words TEXT NOT NULL,
    PRIMARY KEY (source, kind, insight)
);
COMMENT ON TABLE jobs.insights IS 'What Zhu et al. 2023 found about variation: whether it holds on the held-out runs of this source';
COMMENT ON COLUMN jobs.insights.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.insights.model_id IS 'the model that the verdict is by';
COMMENT ON COLUMN jobs.insights.kind IS 'shapes of ratios or of deltas';
COMMENT ON COLUMN jobs.insights.insight IS 'short name of the insight';
COMMENT ON COLUMN jobs.insights.rank IS 'place in the order of the paper, from 1; the same for both kinds';
COMMENT ON COLUMN jobs.insights.verdict IS 'holds, does not hold, or cannot be told: by the interval of rho';
COMMENT ON COLUMN jobs.insights.rho IS 'Spearman correlation of the features with what they add to the odds of the variable shapes; of earlier runs with right labels for history';
COMMENT ON COLUMN jobs.insights.low IS 'lower end of its 95 % interval over jobs';
COMMENT ON COLUMN jobs.insights.high IS 'upper end of its 95 % interval over jobs';
COMMENT ON COLUMN jobs.insights.measured_verdict IS 'the same verdict by measured_rho; missing for history';
COMMENT ON COLUMN jobs.insights.measured_rho IS 'Spearman correlation of the features with the variation that was measured: |log of runtime over the usual time of the job|';
COMMENT ON COLUMN jobs.insights.measured_low IS 'lower end of its 95 % interval over jobs';
COMMENT ON COLUMN jobs.insights.measured_high IS 'upper end of its 95 % interval over jobs';
COMMENT ON COLUMN jobs.insights.n_runs IS 'held-out runs behind rho';
COMMENT ON COLUMN jobs.insights.reason IS 'why it cannot be told, if so';
COMMENT ON COLUMN jobs.insights.words IS 'the insight in words';

CREATE TABLE jobs.usual_values (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    feature TEXT NOT NULL,
    value DOUBLE,
    PRIMARY KEY (source, feature)
);
COMMENT ON TABLE jobs.usual_values IS 'What is usual for each feature over the jobs of a source, to set one run beside';
COMMENT ON COLUMN jobs.usual_values.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.usual_values.model_id IS 'the model that the features are of';
COMMENT ON COLUMN jobs.usual_values.feature IS 'name of the feature, as in the model';
COMMENT ON COLUMN jobs.usual_values.value IS 'median over the jobs of its value in the last run of each, in its unit; missing if unknown';

CREATE TABLE jobs.explanations (
    source TEXT PRIMARY KEY,
    model_id TEXT NOT NULL,
    data_version TEXT NOT NULL,
    parameters TEXT NOT NULL
);
COMMENT ON TABLE jobs.explanations IS 'What the tables of reasons, families, checks and insights of a source were made from';
COMMENT ON COLUMN jobs.explanations.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.explanations.model_id IS 'the model that is explained';
COMMENT ON COLUMN jobs.explanations.data_version IS 'hash over the files of the source that were seen';
COMMENT ON COLUMN jobs.explanations.parameters IS 'JSON of the parameters';
