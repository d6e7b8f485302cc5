-- What Perona's model says of executions and nodes: fingerprints, reasons, scores, states, and what a training measured.
CREATE TABLE nodes.fingerprints (
    source TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    log_norm DOUBLE NOT NULL,
    score DOUBLE,
    probability DOUBLE,
    is_flagged BOOLEAN NOT NULL,
    n_predecessors BIGINT NOT NULL,
    x DOUBLE,
    y DOUBLE,
    encoding DOUBLE[] NOT NULL,
    PRIMARY KEY (source, execution_id)
);
COMMENT ON TABLE nodes.fingerprints IS 'Fingerprint and verdict of each execution (III-C, III-D); as of the latest fingerprinting';
COMMENT ON COLUMN nodes.fingerprints.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.fingerprints.execution_id IS 'execution (nodes.executions)';
COMMENT ON COLUMN nodes.fingerprints.model_id IS 'model that was asked, in ops.models';
COMMENT ON COLUMN nodes.fingerprints.log_norm IS 'natural logarithm of the norm of the fingerprint';
COMMENT ON COLUMN nodes.fingerprints.score IS 'how good the execution was: 1 is the reference fleet, 2 twice as good; missing for a type without a reference';
COMMENT ON COLUMN nodes.fingerprints.probability IS 'that the node was degraded then, 0 to 1';
COMMENT ON COLUMN nodes.fingerprints.is_flagged IS 'the probability lies above the threshold of the model';
COMMENT ON COLUMN nodes.fingerprints.n_predecessors IS 'earlier executions of the node and type that it was judged beside; 0: by itself';
COMMENT ON COLUMN nodes.fingerprints.x IS 'place of the fingerprint''s direction in two dimensions: across (Figure 4)';
COMMENT ON COLUMN nodes.fingerprints.y IS 'the same: up';
COMMENT ON COLUMN nodes.fingerprints.encoding IS 'the fingerprint itself, in the order of the network';

CREATE TABLE nodes.fingerprint_reasons (
    source TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    model_id TEXT NOT NULL,
    metric TEXT NOT NULL,
    deviation DOUBLE NOT NULL,
    measured DOUBLE NOT NULL,
    expected DOUBLE NOT NULL,
    is_beside_others BOOLEAN NOT NULL,
    PRIMARY KEY (source, execution_id, place)
);
COMMENT ON TABLE nodes.fingerprint_reasons IS 'The metrics that say that a flagged execution was degraded, the worst first';
COMMENT ON COLUMN nodes.fingerprint_reasons.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.fingerprint_reasons.execution_id IS 'execution (nodes.fingerprints)';
COMMENT ON COLUMN nodes.fingerprint_reasons.place IS 'from 1: the worst first';
COMMENT ON COLUMN nodes.fingerprint_reasons.model_id IS 'as in nodes.fingerprints';
COMMENT ON COLUMN nodes.fingerprint_reasons.metric IS 'benchmark type and metric, with a slash between';
COMMENT ON COLUMN nodes.fingerprint_reasons.deviation IS 'how far it lies from what was expected, in its usual deviations; negative is worse';
COMMENT ON COLUMN nodes.fingerprint_reasons.measured IS 'its value on the scale of the model, more being better';
COMMENT ON COLUMN nodes.fingerprint_reasons.expected IS 'what was expected there';
COMMENT ON COLUMN nodes.fingerprint_reasons.is_beside_others IS 'expected by its predecessors; false: by the middle of its type';

CREATE TABLE nodes.fingerprint_scores (
    source TEXT NOT NULL,
    aspect TEXT NOT NULL,
    node TEXT NOT NULL,
    model_id TEXT NOT NULL,
    machine_type TEXT,
    score DOUBLE NOT NULL,
    low DOUBLE,
    high DOUBLE,
    rank BIGINT NOT NULL,
    is_tied BOOLEAN NOT NULL,
    n_executions BIGINT NOT NULL,
    n_types BIGINT NOT NULL,
    PRIMARY KEY (source, aspect, node)
);
COMMENT ON TABLE nodes.fingerprint_scores IS 'How good each node is by its fingerprints, by aspect and in one number (III-D)';
COMMENT ON COLUMN nodes.fingerprint_scores.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.fingerprint_scores.aspect IS 'resource that is scored; all: one number from all aspects';
COMMENT ON COLUMN nodes.fingerprint_scores.node IS 'node (nodes.executions)';
COMMENT ON COLUMN nodes.fingerprint_scores.model_id IS 'as in nodes.fingerprints';
COMMENT ON COLUMN nodes.fingerprint_scores.machine_type IS 'type of the node; missing where nobody says';
COMMENT ON COLUMN nodes.fingerprint_scores.score IS '1 is the reference fleet, 2 twice as good';
COMMENT ON COLUMN nodes.fingerprint_scores.low IS 'lower end of the interval, if the same benchmarks ran again; missing without repetitions';
COMMENT ON COLUMN nodes.fingerprint_scores.high IS 'upper end of it';
COMMENT ON COLUMN nodes.fingerprint_scores.rank IS 'place within the aspect, from 1; nodes that cannot be told apart share one';
COMMENT ON COLUMN nodes.fingerprint_scores.is_tied IS 'true where it shares its place';
COMMENT ON COLUMN nodes.fingerprint_scores.n_executions IS 'executions that it rests on';
COMMENT ON COLUMN nodes.fingerprint_scores.n_types IS 'benchmark types that they are of';

CREATE TABLE nodes.fingerprintings (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    key TEXT NOT NULL,
    data_version TEXT NOT NULL,
    n_executions BIGINT NOT NULL,
    n_fingerprints BIGINT NOT NULL,
    n_flagged BIGINT NOT NULL,
    shown DOUBLE NOT NULL,
    fingerprinted_at TIMESTAMP NOT NULL,
    PRIMARY KEY (source)
);
COMMENT ON TABLE nodes.fingerprintings IS 'What the latest fingerprinting of a source rests on: one row a source';
COMMENT ON COLUMN nodes.fingerprintings.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.fingerprintings.model_id IS 'model that was asked, in ops.models';
COMMENT ON COLUMN nodes.fingerprintings.key IS 'hash of data, model, parameters and code; a source whose key has not changed is not asked again';
COMMENT ON COLUMN nodes.fingerprintings.data_version IS 'version of the files of the source';
COMMENT ON COLUMN nodes.fingerprintings.n_executions IS 'executions of benchmarks then';
COMMENT ON COLUMN nodes.fingerprintings.n_fingerprints IS 'of them those with a fingerprint: of a type that the model knows';
COMMENT ON COLUMN nodes.fingerprintings.n_flagged IS 'of them those that were flagged';
COMMENT ON COLUMN nodes.fingerprintings.shown IS 'share of the variance of directions that x and y hold, 0 to 1';
COMMENT ON COLUMN nodes.fingerprintings.fingerprinted_at IS 'when, UTC';

CREATE TABLE nodes.states (
    source TEXT NOT NULL,
    node TEXT NOT NULL,
    aspect TEXT NOT NULL,
    model_id TEXT NOT NULL,
    state TEXT NOT NULL,
    since TIMESTAMP,
    since_execution TEXT,
    n_executions BIGINT NOT NULL,
    n_recent_flagged BIGINT NOT NULL,
    n_left_out BIGINT NOT NULL,
    last_at TIMESTAMP,
    asks_for_benchmark BOOLEAN NOT NULL,
    is_excluded BOOLEAN NOT NULL,
    cost_share DOUBLE,
    watched_at TIMESTAMP NOT NULL,
    PRIMARY KEY (source, node, aspect)
);
COMMENT ON TABLE nodes.states IS 'Whether each node is degrading, by aspect; as of the latest watching';
COMMENT ON COLUMN nodes.states.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.states.node IS 'node (nodes.executions)';
COMMENT ON COLUMN nodes.states.aspect IS 'resource';
COMMENT ON COLUMN nodes.states.model_id IS 'model whose verdicts these are, in ops.models';
COMMENT ON COLUMN nodes.states.state IS 'healthy, suspected (a fresh benchmark is asked for), confirmed, cleared';
COMMENT ON COLUMN nodes.states.since IS 'start of the execution that brought it; missing while nothing has';
COMMENT ON COLUMN nodes.states.since_execution IS 'that execution';
COMMENT ON COLUMN nodes.states.n_executions IS 'executions that count: judged, and not disturbed by others';
COMMENT ON COLUMN nodes.states.n_recent_flagged IS 'of the last of them those that were flagged';
COMMENT ON COLUMN nodes.states.n_left_out IS 'executions that do not count';
COMMENT ON COLUMN nodes.states.last_at IS 'start of the newest that counts';
COMMENT ON COLUMN nodes.states.asks_for_benchmark IS 'true for a suspected one';
COMMENT ON COLUMN nodes.states.is_excluded IS 'true where an alarm of the node is confirmed, in any aspect: no work should go there';
COMMENT ON COLUMN nodes.states.cost_share IS 'share of the node''s time that its benchmarks take; missing for fewer than two';
COMMENT ON COLUMN nodes.states.watched_at IS 'when, UTC';
