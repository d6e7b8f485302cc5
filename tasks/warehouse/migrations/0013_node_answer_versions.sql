-- What the answers about the nodes of a source rest on; what a node did not run, its place on the first component;
-- metrics of which neither more nor less is better.
CREATE TABLE nodes.rankings (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    key TEXT NOT NULL,
    data_version TEXT NOT NULL,
    n_executions BIGINT NOT NULL,
    n_left_out BIGINT NOT NULL,
    ranked_at TIMESTAMP NOT NULL,
    PRIMARY KEY (source)
);
COMMENT ON TABLE nodes.rankings IS 'What the latest ranking of a source, its suspicions and its repeatability rest on: one row a source';
COMMENT ON COLUMN nodes.rankings.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.rankings.model_id IS 'model whose metrics and reference were used, in ops.models';
COMMENT ON COLUMN nodes.rankings.key IS 'hash of data, model, parameters and code; a source whose key has not changed is not ranked again';
COMMENT ON COLUMN nodes.rankings.data_version IS 'version of the files of the source that was ranked';
COMMENT ON COLUMN nodes.rankings.n_executions IS 'executions of the source then';
COMMENT ON COLUMN nodes.rankings.n_left_out IS 'of them those that measured something, but nothing that the model knows: a new benchmark, template or unit';
COMMENT ON COLUMN nodes.rankings.ranked_at IS 'when, UTC';

ALTER TABLE nodes.scores ADD COLUMN lacks TEXT;
COMMENT ON COLUMN nodes.scores.lacks IS 'of the one number: aspects that half of the reference ran and the node did not, with commas between; empty for none';
ALTER TABLE nodes.scores ADD COLUMN pc1 DOUBLE;
COMMENT ON COLUMN nodes.scores.pc1 IS 'of the one number: place on the first principal component of the nodes'' types, 0 their middle, more is better; missing where nothing varies';
COMMENT ON COLUMN nodes.scores.rank IS 'place within the aspect, from 1; nodes that cannot be told apart share one, and nodes that lack an aspect stand behind the others';

ALTER TABLE nodes.decisions ADD COLUMN is_directed BOOLEAN;
COMMENT ON COLUMN nodes.decisions.is_directed IS 'false: the tool declares that neither more nor less is better, the orientation is a guess and counts in no score; missing in older models';

COMMENT ON COLUMN nodes.watched.n_executions IS 'executions that were judged: neither stressed nor disturbed';
COMMENT ON COLUMN nodes.watched.n_low IS 'of them those more than 3.5 robust deviations of their type below the median of the first half of the node''s own';
COMMENT ON COLUMN nodes.watched.worst_ratio IS 'their median score there over that median; missing without any';
