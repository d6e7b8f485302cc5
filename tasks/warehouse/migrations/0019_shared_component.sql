-- What tools say of nodes in common: the order of the nodes of one machine type.
ALTER TABLE nodes.scores ADD COLUMN shared DOUBLE;
ALTER TABLE nodes.scores ADD COLUMN shared_place INTEGER;
COMMENT ON COLUMN nodes.scores.shared IS 'of the one number: place on the shared component of benchmarks of the machine type, 0 the middle of its nodes, more is better; missing below ten nodes or two tools';
COMMENT ON COLUMN nodes.scores.shared_place IS 'place by it among the nodes of the machine type, from 1, shared by ties; missing where shared is';
-- nodes are placed by it where it is: the next ranking makes it anew
DELETE FROM nodes.rankings;
