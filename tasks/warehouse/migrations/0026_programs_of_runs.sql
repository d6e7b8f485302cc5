-- Whose programs took the processor time of a run: what runs is told by them as well as by counters.
ALTER TABLE workloads.runs ADD COLUMN processes TEXT;
COMMENT ON COLUMN workloads.runs.processes IS 'JSON object: shares of the processor time that the processes of its group took, by the name of their program; missing where nobody noted them';
