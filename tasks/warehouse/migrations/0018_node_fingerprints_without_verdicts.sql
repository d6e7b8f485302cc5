-- The network makes fingerprints; verdicts and their reasons are those of the detector (nodes.verdicts).
DROP TABLE nodes.fingerprint_reasons;
ALTER TABLE nodes.fingerprints DROP COLUMN probability;
ALTER TABLE nodes.fingerprints DROP COLUMN is_flagged;
ALTER TABLE nodes.fingerprints DROP COLUMN n_predecessors;
ALTER TABLE nodes.fingerprintings DROP COLUMN n_flagged;
COMMENT ON TABLE nodes.fingerprints IS 'Fingerprint of each execution (III-C, III-D); as of the latest fingerprinting';
