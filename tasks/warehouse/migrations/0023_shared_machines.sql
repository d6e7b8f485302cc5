-- What was said of a run on a machine that others use too: several workloads at once, and what was not theirs.
ALTER TABLE workloads.identifications ADD COLUMN statement TEXT;
ALTER TABLE workloads.identifications ADD COLUMN view TEXT;
ALTER TABLE workloads.identifications ADD COLUMN present STRUCT(workload TEXT, share DOUBLE, probability DOUBLE)[];
ALTER TABLE workloads.identifications ADD COLUMN foreign_share DOUBLE;
ALTER TABLE workloads.identifications ADD COLUMN stolen_share DOUBLE;
ALTER TABLE workloads.identifications ADD COLUMN surer TEXT[];
COMMENT ON COLUMN workloads.identifications.statement IS 'known, known and something unknown, unknown, or idle; confidence belongs to it; missing where an older whorl said it';
COMMENT ON COLUMN workloads.identifications.view IS 'whose counters said so: own (the control group of the workload) or machine';
COMMENT ON COLUMN workloads.identifications.present IS 'known workloads that were there, each with its share of what the known ones did and the probability that it was there';
COMMENT ON COLUMN workloads.identifications.foreign_share IS 'share of the cores that others took meanwhile; missing where nobody measured it';
COMMENT ON COLUMN workloads.identifications.stolen_share IS 'share of the cores that the hypervisor took; missing where nobody measured it';
COMMENT ON COLUMN workloads.identifications.surer IS 'what would make the answer surer, in words';
