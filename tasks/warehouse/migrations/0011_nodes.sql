-- Executions of benchmarks on nodes (Scheinert et al. 2022): what ran where, its metrics, the node's telemetry, the logs.
-- Unique by (source, execution_id), and with metric in metrics and telemetry, kept so by ingest.
CREATE SCHEMA nodes;

CREATE TABLE nodes.executions (
    source TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    node TEXT NOT NULL,
    machine_type TEXT,
    benchmark TEXT NOT NULL,
    aspect TEXT NOT NULL,
    template TEXT,
    template_hash TEXT,
    tool_version TEXT,
    started_at TIMESTAMP,
    ended_at TIMESTAMP,
    duration_s DOUBLE,
    status TEXT NOT NULL,
    is_stressed BOOLEAN,
    stress_wanted BOOLEAN,
    dose TEXT,
    dose_level BIGINT,
    is_contaminated BOOLEAN,
    foreign_cores DOUBLE,
    steal_cores DOUBLE,
    load_1m DOUBLE,
    is_emulated BOOLEAN,
    campaign TEXT,
    region TEXT,
    n_metrics BIGINT NOT NULL,
    missing_metrics TEXT[],
    is_simulated BOOLEAN NOT NULL,
    n_rows BIGINT NOT NULL,
    batch_id TEXT NOT NULL
);
COMMENT ON TABLE nodes.executions IS 'Executions of benchmarks, labelled as stressed or not where somebody knows';
COMMENT ON COLUMN nodes.executions.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.executions.execution_id IS 'name of the execution within its source';
COMMENT ON COLUMN nodes.executions.node IS 'machine that it ran on; names are unique within a source';
COMMENT ON COLUMN nodes.executions.machine_type IS 'type of that machine; missing where nobody says';
COMMENT ON COLUMN nodes.executions.benchmark IS 'what ran: tool and part of the machine, such as cpu-sysbench';
COMMENT ON COLUMN nodes.executions.aspect IS 'cpu, memory, disk, network, system, application or unknown: what it is a measure of';
COMMENT ON COLUMN nodes.executions.template IS 'how it was called: options of the tool, without what differs by node';
COMMENT ON COLUMN nodes.executions.template_hash IS 'hash of the template; with the benchmark the type, and types are never compared';
COMMENT ON COLUMN nodes.executions.tool_version IS 'version of the tool, as it says itself';
COMMENT ON COLUMN nodes.executions.started_at IS 'start, UTC; missing where nobody says';
COMMENT ON COLUMN nodes.executions.ended_at IS 'end, UTC';
COMMENT ON COLUMN nodes.executions.duration_s IS 'seconds from start to end';
COMMENT ON COLUMN nodes.executions.status IS 'completed, failed or timeout';
COMMENT ON COLUMN nodes.executions.is_stressed IS 'label: stress was applied while it ran; missing where nobody says';
COMMENT ON COLUMN nodes.executions.stress_wanted IS 'stress was planned for it';
COMMENT ON COLUMN nodes.executions.dose IS 'which stress, such as cpu-16; empty for none';
COMMENT ON COLUMN nodes.executions.dose_level IS '0: none; 1, 2, 3: meant to move the main metric by about 1, 3, 10 deviations';
COMMENT ON COLUMN nodes.executions.is_contaminated IS 'others used the machine while it ran, more than the recorder lets pass';
COMMENT ON COLUMN nodes.executions.foreign_cores IS 'cores that processes other than benchmark and stress used, mean';
COMMENT ON COLUMN nodes.executions.steal_cores IS 'cores that the hypervisor withheld, mean';
COMMENT ON COLUMN nodes.executions.load_1m IS 'load average over one minute at its start';
COMMENT ON COLUMN nodes.executions.is_emulated IS 'true where the node is made of limits on a larger machine';
COMMENT ON COLUMN nodes.executions.campaign IS 'recording that it is part of';
COMMENT ON COLUMN nodes.executions.region IS 'where the machine stands';
COMMENT ON COLUMN nodes.executions.n_metrics IS 'metrics with a value';
COMMENT ON COLUMN nodes.executions.missing_metrics IS 'metrics that the tool should have told and did not; they are never zero';
COMMENT ON COLUMN nodes.executions.is_simulated IS 'true for values that were drawn, not measured';
COMMENT ON COLUMN nodes.executions.n_rows IS 'rows of the file that it was made of';
COMMENT ON COLUMN nodes.executions.batch_id IS 'file that gave the row last (ops.files)';

CREATE TABLE nodes.metrics (
    source TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    metric TEXT NOT NULL,
    value DOUBLE NOT NULL,
    unit TEXT NOT NULL,
    batch_id TEXT NOT NULL
);
COMMENT ON TABLE nodes.metrics IS 'Metrics of each execution; replaced with their execution';
COMMENT ON COLUMN nodes.metrics.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.metrics.execution_id IS 'execution that it belongs to (nodes.executions)';
COMMENT ON COLUMN nodes.metrics.metric IS 'what was measured, without its unit';
COMMENT ON COLUMN nodes.metrics.value IS 'the value, finite, in the unit';
COMMENT ON COLUMN nodes.metrics.unit IS 'unit as the tool wrote it; empty for a plain number';
COMMENT ON COLUMN nodes.metrics.batch_id IS 'file that gave the row last (ops.files)';

CREATE TABLE nodes.telemetry (
    source TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    at_s DOUBLE[] NOT NULL,
    samples DOUBLE[] NOT NULL,
    batch_id TEXT NOT NULL
);
COMMENT ON TABLE nodes.telemetry IS 'What was sampled on the node before, during and after an execution; replaced with it';
COMMENT ON COLUMN nodes.telemetry.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.telemetry.execution_id IS 'execution that it belongs to (nodes.executions)';
COMMENT ON COLUMN nodes.telemetry.metric IS 'what was sampled on the node';
COMMENT ON COLUMN nodes.telemetry.unit IS 'unit of the samples; empty where unknown';
COMMENT ON COLUMN nodes.telemetry.at_s IS 'time of each sample, seconds after the start: negative before it, rising';
COMMENT ON COLUMN nodes.telemetry.samples IS 'the samples, in the order of at_s; missing ones stay missing';
COMMENT ON COLUMN nodes.telemetry.batch_id IS 'file that gave the row last (ops.files)';

CREATE TABLE nodes.logs (
    source TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    log TEXT NOT NULL,
    batch_id TEXT NOT NULL
);
COMMENT ON TABLE nodes.logs IS 'Raw output of the tool of each execution; replaced with it';
COMMENT ON COLUMN nodes.logs.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN nodes.logs.execution_id IS 'execution that it belongs to (nodes.executions)';
COMMENT ON COLUMN nodes.logs.tool IS 'tool that wrote it';
COMMENT ON COLUMN nodes.logs.log IS 'what the tool wrote, so that it can be read anew';
COMMENT ON COLUMN nodes.logs.batch_id IS 'file that gave the row last (ops.files)';
