-- Fingerprints are compared by their norms, and reasons told by their range: nothing reads these columns.
ALTER TABLE nodes.fingerprints DROP COLUMN x;
ALTER TABLE nodes.fingerprints DROP COLUMN y;
ALTER TABLE nodes.fingerprintings DROP COLUMN shown;
ALTER TABLE nodes.verdict_reasons DROP COLUMN usual;
ALTER TABLE nodes.verdict_reasons DROP COLUMN is_headline;
ALTER TABLE nodes.verdict_reasons DROP COLUMN higher_is_better;
