-- What is said of nodes (Scheinert et al. 2022): metrics kept or dropped, scores, repeatability, suspicions, evaluations.
CREATE TABLE nodes.decisions (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    benchmark_type TEXT NOT NULL,
    metric TEXT NOT NULL,
    unit_written TEXT NOT NULL,
    unit TEXT NOT NULL,
    divided_by TEXT NOT NULL,
    n_values BIGINT NOT NULL,
    n_apart BIGINT NOT NULL,
    note TEXT NOT NULL,
    n_distinct BIGINT NOT NULL,
    dispersion DOUBLE,
    deviation DOUBLE,
    is_kept BOOLEAN NOT NULL,
    why TEXT NOT NULL,
    orientation BIGINT NOT NULL,
    orientation_from TEXT NOT NULL,
    rule_with_stressed BIGINT,
    rule_without_stressed BIGINT,
    agrees BOOLEAN,
    PRIMARY KEY (source, model_id, benchmark_type, metric)
);
COMMENT ON TABLE nodes.decisions IS 'What preprocessing made of each metric (III-B): one row a model, benchmark type and metric';
COMMENT ON COLUMN nodes.decisions.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.decisions.model_id IS 'model that decided, in ops.models';
COMMENT ON COLUMN nodes.decisions.benchmark_type IS 'benchmark and, after @, the first digits of the hash of its template';
COMMENT ON COLUMN nodes.decisions.metric IS 'what was measured (nodes.metrics)';
COMMENT ON COLUMN nodes.decisions.unit_written IS 'units as the tools wrote them, with commas between';
COMMENT ON COLUMN nodes.decisions.unit IS 'base unit that all values were brought to';
COMMENT ON COLUMN nodes.decisions.divided_by IS 'time that a total is divided by, to become a rate; empty for none';
COMMENT ON COLUMN nodes.decisions.n_values IS 'values that could be used';
COMMENT ON COLUMN nodes.decisions.n_apart IS 'values whose unit could not become the base unit';
COMMENT ON COLUMN nodes.decisions.note IS 'why they could not, and other remarks; empty for none';
COMMENT ON COLUMN nodes.decisions.n_distinct IS 'distinct values';
COMMENT ON COLUMN nodes.decisions.dispersion IS 'robust coefficient of variation: spread as a share of the median';
COMMENT ON COLUMN nodes.decisions.deviation IS 'standard deviation, in the base unit';
COMMENT ON COLUMN nodes.decisions.is_kept IS 'true: it counts; false: dropped';
COMMENT ON COLUMN nodes.decisions.why IS 'why it is dropped; empty if it is kept';
COMMENT ON COLUMN nodes.decisions.orientation IS '1: more is better, -1: less is better';
COMMENT ON COLUMN nodes.decisions.orientation_from IS 'what says so: declared, name, unit, rule (the paper''s), override (its authors''), or none';
COMMENT ON COLUMN nodes.decisions.rule_with_stressed IS 'what the paper''s rule says by all executions; missing without two distinct values';
COMMENT ON COLUMN nodes.decisions.rule_without_stressed IS 'what it says without the executions known to be stressed';
COMMENT ON COLUMN nodes.decisions.agrees IS 'the rule, by all executions, says what is declared; missing where one of them is silent';

CREATE TABLE nodes.scores (
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
    key TEXT NOT NULL,
    scored_at TIMESTAMP NOT NULL,
    PRIMARY KEY (source, aspect, node)
);
COMMENT ON TABLE nodes.scores IS 'How good each node is, by aspect and in one number; the latest ranking of a source';
COMMENT ON COLUMN nodes.scores.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.scores.aspect IS 'resource that is scored; all: one number from all aspects';
COMMENT ON COLUMN nodes.scores.node IS 'node (nodes.executions)';
COMMENT ON COLUMN nodes.scores.model_id IS 'model whose metrics and reference it is scored by, in ops.models';
COMMENT ON COLUMN nodes.scores.machine_type IS 'type of the node; missing where nobody says';
COMMENT ON COLUMN nodes.scores.score IS 'geometric mean of oriented ratios to the reference fleet: 1 is the reference, 2 twice as good';
COMMENT ON COLUMN nodes.scores.low IS 'lower end of the interval of the score, if the same benchmarks ran again; missing without repetitions';
COMMENT ON COLUMN nodes.scores.high IS 'upper end of it';
COMMENT ON COLUMN nodes.scores.rank IS 'place within the aspect, from 1; nodes that cannot be told apart share one';
COMMENT ON COLUMN nodes.scores.is_tied IS 'true where it shares its place';
COMMENT ON COLUMN nodes.scores.n_executions IS 'executions that it rests on: neither stressed nor disturbed';
COMMENT ON COLUMN nodes.scores.n_types IS 'benchmark types that they are of';
COMMENT ON COLUMN nodes.scores.key IS 'hash of data, model, parameters and code; a source whose key has not changed is not ranked again';
COMMENT ON COLUMN nodes.scores.scored_at IS 'when, UTC';

CREATE TABLE nodes.watched (
    source TEXT NOT NULL,
    node TEXT NOT NULL,
    model_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    machine_type TEXT,
    n_executions BIGINT NOT NULL,
    n_low BIGINT NOT NULL,
    low_share DOUBLE NOT NULL,
    worst_type TEXT NOT NULL,
    worst_ratio DOUBLE,
    PRIMARY KEY (source, node)
);
COMMENT ON TABLE nodes.watched IS 'Nodes by how much of what they did lies far below their own level; as of the latest ranking';
COMMENT ON COLUMN nodes.watched.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.watched.node IS 'node (nodes.executions)';
COMMENT ON COLUMN nodes.watched.model_id IS 'as in nodes.scores';
COMMENT ON COLUMN nodes.watched.place IS 'place, from 1: the most suspicious first';
COMMENT ON COLUMN nodes.watched.machine_type IS 'type of the node; missing where nobody says';
COMMENT ON COLUMN nodes.watched.n_executions IS 'executions that were judged';
COMMENT ON COLUMN nodes.watched.n_low IS 'of them those more than 3.5 robust deviations of their type below the node''s own median';
COMMENT ON COLUMN nodes.watched.low_share IS 'their share, 0 to 1';
COMMENT ON COLUMN nodes.watched.worst_type IS 'benchmark type with most of them; empty without any';
COMMENT ON COLUMN nodes.watched.worst_ratio IS 'their median score there over the node''s own; missing without any';

CREATE TABLE nodes.repeatability (
    source TEXT NOT NULL,
    benchmark_type TEXT NOT NULL,
    metric TEXT NOT NULL,
    node TEXT NOT NULL,
    model_id TEXT NOT NULL,
    aspect TEXT NOT NULL,
    machine_type TEXT,
    is_counted BOOLEAN NOT NULL,
    n_runs BIGINT NOT NULL,
    median DOUBLE NOT NULL,
    unit TEXT NOT NULL,
    cv DOUBLE,
    rerun_median DOUBLE,
    rerun_p90 DOUBLE,
    runs_for_5 DOUBLE,
    runs_for_10 DOUBLE,
    PRIMARY KEY (source, benchmark_type, metric, node)
);
COMMENT ON TABLE nodes.repeatability IS 'How much a rerun differs, by executions that were neither stressed nor disturbed; as of the latest ranking';
COMMENT ON COLUMN nodes.repeatability.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.repeatability.benchmark_type IS 'as in nodes.decisions';
COMMENT ON COLUMN nodes.repeatability.metric IS 'what was measured (nodes.metrics)';
COMMENT ON COLUMN nodes.repeatability.node IS 'node (nodes.executions)';
COMMENT ON COLUMN nodes.repeatability.model_id IS 'as in nodes.scores';
COMMENT ON COLUMN nodes.repeatability.aspect IS 'resource that the benchmark measures';
COMMENT ON COLUMN nodes.repeatability.machine_type IS 'type of the node; missing where nobody says';
COMMENT ON COLUMN nodes.repeatability.is_counted IS 'true where the metric counts in the score';
COMMENT ON COLUMN nodes.repeatability.n_runs IS 'executions';
COMMENT ON COLUMN nodes.repeatability.median IS 'median, in the unit';
COMMENT ON COLUMN nodes.repeatability.unit IS 'base unit';
COMMENT ON COLUMN nodes.repeatability.cv IS 'robust coefficient of variation';
COMMENT ON COLUMN nodes.repeatability.rerun_median IS 'absolute logarithm of the ratio of one execution to the one before: median';
COMMENT ON COLUMN nodes.repeatability.rerun_p90 IS 'the same: 90 % quantile';
COMMENT ON COLUMN nodes.repeatability.runs_for_5 IS 'executions before and after that it takes to see a change by 5 %; missing where no number does';
COMMENT ON COLUMN nodes.repeatability.runs_for_10 IS 'the same for 10 %';

CREATE TABLE nodes.pairs (
    source TEXT NOT NULL,
    benchmark_type TEXT NOT NULL,
    metric TEXT NOT NULL,
    one TEXT NOT NULL,
    other TEXT NOT NULL,
    model_id TEXT NOT NULL,
    aspect TEXT NOT NULL,
    is_counted BOOLEAN NOT NULL,
    ratio DOUBLE NOT NULL,
    n_runs DOUBLE,
    PRIMARY KEY (source, benchmark_type, metric, one, other)
);
COMMENT ON TABLE nodes.pairs IS 'How many executions it takes to tell two nodes apart; as of the latest ranking';
COMMENT ON COLUMN nodes.pairs.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.pairs.benchmark_type IS 'as in nodes.decisions';
COMMENT ON COLUMN nodes.pairs.metric IS 'what was measured (nodes.metrics)';
COMMENT ON COLUMN nodes.pairs.one IS 'node (nodes.executions)';
COMMENT ON COLUMN nodes.pairs.other IS 'another node';
COMMENT ON COLUMN nodes.pairs.model_id IS 'as in nodes.scores';
COMMENT ON COLUMN nodes.pairs.aspect IS 'resource that the benchmark measures';
COMMENT ON COLUMN nodes.pairs.is_counted IS 'true where the metric counts in the score';
COMMENT ON COLUMN nodes.pairs.ratio IS 'median of the one over that of the other';
COMMENT ON COLUMN nodes.pairs.n_runs IS 'executions of each that tell them apart; missing where no number does';

CREATE TABLE nodes.suspicions (
    source TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    detector TEXT NOT NULL,
    model_id TEXT NOT NULL,
    score DOUBLE NOT NULL,
    threshold DOUBLE NOT NULL,
    is_suspicious BOOLEAN NOT NULL,
    PRIMARY KEY (source, execution_id, detector)
);
COMMENT ON TABLE nodes.suspicions IS 'What detectors say of each execution; as of the latest ranking';
COMMENT ON COLUMN nodes.suspicions.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.suspicions.execution_id IS 'execution that was judged (nodes.executions)';
COMMENT ON COLUMN nodes.suspicions.detector IS 'zscore, forest, lastk, changepoint';
COMMENT ON COLUMN nodes.suspicions.model_id IS 'as in nodes.scores';
COMMENT ON COLUMN nodes.suspicions.score IS 'how unlike the others it is, in the detector''s own measure; larger is stranger';
COMMENT ON COLUMN nodes.suspicions.threshold IS 'score above which an execution is suspicious, chosen on this source itself';
COMMENT ON COLUMN nodes.suspicions.is_suspicious IS 'whether it lies above';

CREATE TABLE nodes.evaluation_figures (
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    value DOUBLE,
    reason TEXT,
    data_version TEXT NOT NULL,
    evaluated_at TIMESTAMP NOT NULL,
    PRIMARY KEY (source, key)
);
COMMENT ON TABLE nodes.evaluation_figures IS 'Numbers of the latest evaluation of a source, by the keys of tasks/nodes/README.md';
COMMENT ON COLUMN nodes.evaluation_figures.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.evaluation_figures.key IS 'which figure: <part>.<measure>[.<slice>]';
COMMENT ON COLUMN nodes.evaluation_figures.value IS 'the figure; missing where it cannot be had';
COMMENT ON COLUMN nodes.evaluation_figures.reason IS 'why it cannot';
COMMENT ON COLUMN nodes.evaluation_figures.data_version IS 'version of the files of the source that were evaluated';
COMMENT ON COLUMN nodes.evaluation_figures.evaluated_at IS 'when, UTC';
