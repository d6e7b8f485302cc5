-- Runs of recurring jobs. Unique by (source, run_id), kept so by ingest: an index would not fit into bounded memory.
CREATE SCHEMA jobs;
CREATE TABLE jobs.runs (
    source TEXT NOT NULL,
    run_id TEXT NOT NULL,
    group_key TEXT NOT NULL,
    name TEXT,
    plan_signature TEXT,
    user_name TEXT,
    queue TEXT,
    submitted_at TIMESTAMP,
    started_at TIMESTAMP,
    ended_at TIMESTAMP,
    wait_s DOUBLE,
    runtime_s DOUBLE,
    status TEXT NOT NULL,
    requested_cpus DOUBLE,
    used_cpus DOUBLE,
    requested_runtime_s DOUBLE,
    requested_memory_bytes DOUBLE,
    cpu_s DOUBLE,
    peak_memory_bytes DOUBLE,
    input_bytes DOUBLE,
    is_simulated BOOLEAN NOT NULL,
    batch_id TEXT NOT NULL
);
COMMENT ON TABLE jobs.runs IS 'Runs of jobs, one row a run, unique by source and run_id';
COMMENT ON COLUMN jobs.runs.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.runs.run_id IS 'native id of the run within its source';
COMMENT ON COLUMN jobs.runs.group_key IS 'recurring job that the run belongs to: normalised name and plan signature';
COMMENT ON COLUMN jobs.runs.name IS 'name as the log gives it, or a pseudonym';
COMMENT ON COLUMN jobs.runs.plan_signature IS 'hash over the operators of the execution plan, without parameters';
COMMENT ON COLUMN jobs.runs.user_name IS 'who submitted the run, or a pseudonym';
COMMENT ON COLUMN jobs.runs.queue IS 'queue, partition or pool';
COMMENT ON COLUMN jobs.runs.submitted_at IS 'submission, UTC';
COMMENT ON COLUMN jobs.runs.started_at IS 'start, UTC';
COMMENT ON COLUMN jobs.runs.ended_at IS 'end, UTC; missing while the run goes on';
COMMENT ON COLUMN jobs.runs.wait_s IS 'seconds from submission to start';
COMMENT ON COLUMN jobs.runs.runtime_s IS 'seconds from start to end; missing while the run goes on';
COMMENT ON COLUMN jobs.runs.status IS 'completed, failed, cancelled, timeout, running, pending or unknown';
COMMENT ON COLUMN jobs.runs.requested_cpus IS 'processors, cores or tokens that were asked for';
COMMENT ON COLUMN jobs.runs.used_cpus IS 'processors, cores or tokens that the run got';
COMMENT ON COLUMN jobs.runs.requested_runtime_s IS 'time limit in seconds';
COMMENT ON COLUMN jobs.runs.requested_memory_bytes IS 'memory that was asked for, in bytes';
COMMENT ON COLUMN jobs.runs.cpu_s IS 'CPU seconds over all processors';
COMMENT ON COLUMN jobs.runs.peak_memory_bytes IS 'largest memory in use, in bytes';
COMMENT ON COLUMN jobs.runs.input_bytes IS 'bytes of input data';
COMMENT ON COLUMN jobs.runs.is_simulated IS 'true for rows that were drawn, not measured';
COMMENT ON COLUMN jobs.runs.batch_id IS 'file that gave the row last (ops.files)';
