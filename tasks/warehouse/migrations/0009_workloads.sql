-- Telemetry (Hossain et al. 2022): runs, the counters of each with their values, and the long view of samples.
-- Unique by (source, run_id) and (source, run_id, counter), kept so by ingest.
CREATE SCHEMA workloads;

CREATE TABLE workloads.runs (
    source TEXT NOT NULL,
    run_id TEXT NOT NULL,
    workload TEXT,
    input TEXT,
    round TEXT,
    machine TEXT,
    started_at TIMESTAMP,
    interval_s DOUBLE,
    n_samples BIGINT NOT NULL,
    duration_s DOUBLE,
    n_rows BIGINT NOT NULL,
    n_missed BIGINT NOT NULL,
    n_resets BIGINT NOT NULL,
    is_resampled BOOLEAN NOT NULL,
    refused_columns TEXT[],
    at_s DOUBLE[] NOT NULL,
    is_simulated BOOLEAN NOT NULL,
    batch_id TEXT NOT NULL
);
COMMENT ON TABLE workloads.runs IS 'Runs of workloads, labelled or not';
COMMENT ON COLUMN workloads.runs.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN workloads.runs.run_id IS 'name of the run within its source';
COMMENT ON COLUMN workloads.runs.workload IS 'label: what ran; missing where nobody says';
COMMENT ON COLUMN workloads.runs.input IS 'label: what it ran on';
COMMENT ON COLUMN workloads.runs.round IS 'label: which repetition it was';
COMMENT ON COLUMN workloads.runs.machine IS 'label: where it ran';
COMMENT ON COLUMN workloads.runs.started_at IS 'time that at_s counts from, UTC; missing where the file does not say';
COMMENT ON COLUMN workloads.runs.interval_s IS 'nominal seconds between two samples';
COMMENT ON COLUMN workloads.runs.n_samples IS 'samples of the run, missed ones included';
COMMENT ON COLUMN workloads.runs.duration_s IS 'seconds that the samples span, the interval of the first included';
COMMENT ON COLUMN workloads.runs.n_rows IS 'rows of the file that the samples were made of';
COMMENT ON COLUMN workloads.runs.n_missed IS 'samples that the file lacks: rows without a value that stand for them';
COMMENT ON COLUMN workloads.runs.n_resets IS 'values left out because a running total fell, over all counters';
COMMENT ON COLUMN workloads.runs.is_resampled IS 'true where irregular samples were brought to a regular spacing';
COMMENT ON COLUMN workloads.runs.refused_columns IS 'columns of the file that are no counters of this run, each with the reason';
COMMENT ON COLUMN workloads.runs.at_s IS 'time of each sample, seconds after started_at, rising';
COMMENT ON COLUMN workloads.runs.is_simulated IS 'true for samples that were drawn, not measured';
COMMENT ON COLUMN workloads.runs.batch_id IS 'file that gave the row last (ops.files)';

CREATE TABLE workloads.counters (
    source TEXT NOT NULL,
    run_id TEXT NOT NULL,
    counter TEXT NOT NULL,
    unit TEXT NOT NULL,
    kind TEXT NOT NULL,
    is_rate BOOLEAN NOT NULL,
    scope TEXT NOT NULL,
    is_constant BOOLEAN NOT NULL,
    running_pct DOUBLE,
    samples DOUBLE[] NOT NULL,
    batch_id TEXT NOT NULL
);
COMMENT ON TABLE workloads.counters IS 'Counters of each run with their values; replaced with their run';
COMMENT ON COLUMN workloads.counters.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN workloads.counters.run_id IS 'run that it belongs to (workloads.runs)';
COMMENT ON COLUMN workloads.counters.counter IS 'name: group before a dot, unit at the end where it has one';
COMMENT ON COLUMN workloads.counters.unit IS 'unit of the values; of a rate, what there is of it per second; empty where unknown';
COMMENT ON COLUMN workloads.counters.kind IS 'hardware, software or unknown: what counted it';
COMMENT ON COLUMN workloads.counters.is_rate IS 'true: per second over the interval that ended at the sample; false: read at the sample';
COMMENT ON COLUMN workloads.counters.scope IS 'machine, or workload: its own control group';
COMMENT ON COLUMN workloads.counters.is_constant IS 'true where all values of the run are equal: kept, and marked';
COMMENT ON COLUMN workloads.counters.running_pct IS 'share of the time that perf counted it (multiplexing), mean, in percent';
COMMENT ON COLUMN workloads.counters.samples IS 'its values, in the order of at_s of the run; missing ones stay missing';
COMMENT ON COLUMN workloads.counters.batch_id IS 'file that gave the row last (ops.files)';

CREATE VIEW workloads.samples AS
WITH final AS (
    SELECT
        counters.source AS source,
        counters.run_id AS run_id,
        counters.counter AS counter,
        counters.batch_id AS batch_id,
        UNNEST(RANGE(LEN(counters.samples))) AS sample,
        UNNEST(runs.at_s) AS at_s,
        UNNEST(counters.samples) AS value
    FROM workloads.counters AS counters JOIN workloads.runs AS runs USING (source, run_id)
)
SELECT source, run_id, counter, sample, at_s, value, batch_id FROM final;
COMMENT ON VIEW workloads.samples IS 'Samples of the runs, one row a run, counter and sample';
COMMENT ON COLUMN workloads.samples.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN workloads.samples.run_id IS 'run that it belongs to (workloads.runs)';
COMMENT ON COLUMN workloads.samples.counter IS 'what was counted (workloads.counters)';
COMMENT ON COLUMN workloads.samples.sample IS 'number of the sample within its run, from 0';
COMMENT ON COLUMN workloads.samples.at_s IS 'time of the sample, seconds after the start of the run';
COMMENT ON COLUMN workloads.samples.value IS 'the value; missing where it was not measured';
COMMENT ON COLUMN workloads.samples.batch_id IS 'file that gave the row last (ops.files)';
