-- Which nodes stand out by slow executions: the exact test of shares, and how the slow ones lie in time.
ALTER TABLE nodes.watched ADD COLUMN p_value DOUBLE;
ALTER TABLE nodes.watched ADD COLUMN stands_out BOOLEAN;
ALTER TABLE nodes.watched ADD COLUMN course TEXT;
ALTER TABLE nodes.watched ADD COLUMN first_at TIMESTAMP;
ALTER TABLE nodes.watched ADD COLUMN last_at TIMESTAMP;
COMMENT ON TABLE nodes.watched IS 'Nodes by their slow executions beside those of the other nodes; as of the latest ranking';
COMMENT ON COLUMN nodes.watched.place IS 'place, from 1: those that stand out first, then by p_value';
COMMENT ON COLUMN nodes.watched.n_low IS 'of them the slow ones: below the level of the node, or that of its peers, by a margin (tasks/nodes/suspicion.py)';
COMMENT ON COLUMN nodes.watched.worst_type IS 'benchmark type with the largest share of slow ones; empty without any';
COMMENT ON COLUMN nodes.watched.worst_ratio IS 'median score of the slow ones there over that level; missing without any';
COMMENT ON COLUMN nodes.watched.p_value IS 'chance of so many slow executions if all nodes had the same share of each type, after Holm; missing for one node alone';
COMMENT ON COLUMN nodes.watched.stands_out IS 'whether that is below 0.01, and the share at least 0.1 of a type';
COMMENT ON COLUMN nodes.watched.course IS 'how the slow ones lie in time: lasting (until now), recovered, scattered, or empty without any';
COMMENT ON COLUMN nodes.watched.first_at IS 'start of the first execution of the slow time, UTC; missing where nobody says';
COMMENT ON COLUMN nodes.watched.last_at IS 'start of the last one, UTC';
-- what was told before by another measure is not told again: the next ranking makes it anew
DELETE FROM nodes.watched;
DELETE FROM nodes.rankings;
