-- Verdicts of the detector on executions of benchmarks, the metrics that say so, and what they rest on.
CREATE TABLE nodes.verdicts (
    source TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    probability DOUBLE,
    is_flagged BOOLEAN NOT NULL,
    is_cold BOOLEAN NOT NULL,
    by_labels BOOLEAN NOT NULL,
    PRIMARY KEY (source, execution_id)
);
COMMENT ON TABLE nodes.verdicts IS 'Whether each execution looks degraded; as of the latest judging';
COMMENT ON COLUMN nodes.verdicts.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.verdicts.execution_id IS 'execution (nodes.executions)';
COMMENT ON COLUMN nodes.verdicts.model_id IS 'detector that was asked, in ops.models';
COMMENT ON COLUMN nodes.verdicts.probability IS 'that the node was degraded then, 0 to 1; missing for a benchmark type that the detector did not learn';
COMMENT ON COLUMN nodes.verdicts.is_flagged IS 'its score lies above the threshold of the detector';
COMMENT ON COLUMN nodes.verdicts.is_cold IS 'there was nothing to compare it with: a node and machine type that were new';
COMMENT ON COLUMN nodes.verdicts.by_labels IS 'true: by models that know stress of the benchmark type; false: by its headline metrics';

CREATE TABLE nodes.verdict_reasons (
    source TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    model_id TEXT NOT NULL,
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    value DOUBLE NOT NULL,
    usual_low DOUBLE NOT NULL,
    usual DOUBLE NOT NULL,
    usual_high DOUBLE NOT NULL,
    deviation DOUBLE NOT NULL,
    is_headline BOOLEAN NOT NULL,
    higher_is_better BOOLEAN NOT NULL,
    PRIMARY KEY (source, execution_id, place)
);
COMMENT ON TABLE nodes.verdict_reasons IS 'The metrics that say that a flagged execution was degraded, the most telling first';
COMMENT ON COLUMN nodes.verdict_reasons.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.verdict_reasons.execution_id IS 'execution (nodes.verdicts)';
COMMENT ON COLUMN nodes.verdict_reasons.place IS 'from 1: the most telling first, headline metrics before others';
COMMENT ON COLUMN nodes.verdict_reasons.model_id IS 'as in nodes.verdicts';
COMMENT ON COLUMN nodes.verdict_reasons.metric IS 'metric as the tool names it';
COMMENT ON COLUMN nodes.verdict_reasons.unit IS 'base unit of the values';
COMMENT ON COLUMN nodes.verdict_reasons.value IS 'what was measured, in the base unit';
COMMENT ON COLUMN nodes.verdict_reasons.usual_low IS 'lower end of what is usual: two deviations below, in the base unit';
COMMENT ON COLUMN nodes.verdict_reasons.usual IS 'median of the last executions of the node and type, in the base unit';
COMMENT ON COLUMN nodes.verdict_reasons.usual_high IS 'upper end of what is usual, in the base unit';
COMMENT ON COLUMN nodes.verdict_reasons.deviation IS 'how much worse than usual, in robust deviations';
COMMENT ON COLUMN nodes.verdict_reasons.is_headline IS 'a rate or latency that the tool exists to report';
COMMENT ON COLUMN nodes.verdict_reasons.higher_is_better IS 'which way is better';

CREATE TABLE nodes.judgings (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    key TEXT NOT NULL,
    data_version TEXT NOT NULL,
    n_executions BIGINT NOT NULL,
    n_judged BIGINT NOT NULL,
    n_flagged BIGINT NOT NULL,
    threshold DOUBLE NOT NULL,
    alarms_per_day DOUBLE,
    executions_per_day DOUBLE,
    judged_at TIMESTAMP NOT NULL,
    PRIMARY KEY (source)
);
COMMENT ON TABLE nodes.judgings IS 'What the latest verdicts on a source rest on: one row a source';
COMMENT ON COLUMN nodes.judgings.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.judgings.model_id IS 'detector that was asked, in ops.models';
COMMENT ON COLUMN nodes.judgings.key IS 'hash of data, detector, parameters and code; a source whose key has not changed is not asked again';
COMMENT ON COLUMN nodes.judgings.data_version IS 'version of the files of the source';
COMMENT ON COLUMN nodes.judgings.n_executions IS 'executions of benchmarks then';
COMMENT ON COLUMN nodes.judgings.n_judged IS 'of them those with a verdict';
COMMENT ON COLUMN nodes.judgings.n_flagged IS 'of them those that were flagged';
COMMENT ON COLUMN nodes.judgings.threshold IS 'score above which an execution is flagged, in logits';
COMMENT ON COLUMN nodes.judgings.alarms_per_day IS 'false alarms a day over the fleet to be expected at its pace; missing where the threshold was not chosen by a budget';
COMMENT ON COLUMN nodes.judgings.executions_per_day IS 'executions a day, all nodes together';
COMMENT ON COLUMN nodes.judgings.judged_at IS 'when, UTC';
