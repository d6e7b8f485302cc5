-- What plain detectors suspected is told no more: nodes.verdicts holds what the detector says of executions.
DROP TABLE nodes.suspicions;
COMMENT ON TABLE nodes.rankings IS 'What the latest ranking of a source and its repeatability rest on: one row a source';
