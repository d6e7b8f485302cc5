-- What Zhu et al. 2023 (3.2 and 3.3) explain runtimes by: plan, tokens, SKUs, load, vertices.
ALTER TABLE jobs.runs ADD COLUMN period TEXT;
COMMENT ON COLUMN jobs.runs.period IS 'period of a recording, such as D1';
ALTER TABLE jobs.runs ADD COLUMN what_if TEXT;
COMMENT ON COLUMN jobs.runs.what_if IS 'what was changed on purpose against matched_run_id: no_spare, newest_sku or steady_load; baseline for the unchanged replay';
ALTER TABLE jobs.runs ADD COLUMN matched_run_id TEXT;
COMMENT ON COLUMN jobs.runs.matched_run_id IS 'run of the same source that this one repeats';
ALTER TABLE jobs.runs ADD COLUMN operators TEXT;
COMMENT ON COLUMN jobs.runs.operators IS 'JSON object of the operators of the plan with their counts';
ALTER TABLE jobs.runs ADD COLUMN estimated_rows DOUBLE;
COMMENT ON COLUMN jobs.runs.estimated_rows IS 'rows of the result as the optimiser estimates them';
ALTER TABLE jobs.runs ADD COLUMN estimated_cost DOUBLE;
COMMENT ON COLUMN jobs.runs.estimated_cost IS 'estimated cardinalities summed over all operators of the plan (C_out), rows';
ALTER TABLE jobs.runs ADD COLUMN spare_tokens_available DOUBLE;
COMMENT ON COLUMN jobs.runs.spare_tokens_available IS 'preemptible tokens that were free just before submission';
ALTER TABLE jobs.runs ADD COLUMN queue_length DOUBLE;
COMMENT ON COLUMN jobs.runs.queue_length IS 'runs that were waiting when this one was submitted';
ALTER TABLE jobs.runs ADD COLUMN load_mean DOUBLE;
COMMENT ON COLUMN jobs.runs.load_mean IS 'usage over quota of the SKUs offered, mean over the 10 s before submission and over them, a ratio';
ALTER TABLE jobs.runs ADD COLUMN load_sd DOUBLE;
COMMENT ON COLUMN jobs.runs.load_sd IS 'standard deviation of that load, a ratio';
ALTER TABLE jobs.runs ADD COLUMN skus STRUCT(
    sku TEXT,
    tokens DOUBLE,
    free_tokens DOUBLE,
    load_mean DOUBLE,
    load_sd DOUBLE
)[];
COMMENT ON COLUMN jobs.runs.skus IS 'SKUs offered to the run with their state just before submission (view jobs.run_skus)';
ALTER TABLE jobs.runs ADD COLUMN min_tokens DOUBLE;
COMMENT ON COLUMN jobs.runs.min_tokens IS 'smallest number of tokens in use; the mean is used_cpus';
ALTER TABLE jobs.runs ADD COLUMN peak_tokens DOUBLE;
COMMENT ON COLUMN jobs.runs.peak_tokens IS 'largest number of tokens in use';
ALTER TABLE jobs.runs ADD COLUMN spare_tokens_used DOUBLE;
COMMENT ON COLUMN jobs.runs.spare_tokens_used IS 'preemptible tokens in use beyond the request, mean over the run';
ALTER TABLE jobs.runs ADD COLUMN read_bytes DOUBLE;
COMMENT ON COLUMN jobs.runs.read_bytes IS 'bytes read';
ALTER TABLE jobs.runs ADD COLUMN temp_bytes DOUBLE;
COMMENT ON COLUMN jobs.runs.temp_bytes IS 'largest size of what was spilled to disk, in bytes';
ALTER TABLE jobs.runs ADD COLUMN vertices STRUCT(
    vertex INTEGER,
    stage TEXT,
    sku TEXT,
    started_at TIMESTAMP,
    ended_at TIMESTAMP,
    cpu_s DOUBLE,
    min_tokens DOUBLE,
    mean_tokens DOUBLE,
    peak_tokens DOUBLE,
    read_bytes DOUBLE,
    temp_bytes DOUBLE
)[];
COMMENT ON COLUMN jobs.runs.vertices IS 'vertices of the run (view jobs.vertices)';
ALTER TABLE jobs.runs ADD COLUMN skyline STRUCT(
    at_s DOUBLE,
    tokens DOUBLE,
    guaranteed DOUBLE
)[];
COMMENT ON COLUMN jobs.runs.skyline IS 'tokens held over time, a step function (view jobs.skylines; Figure 3)';
ALTER TABLE jobs.runs ADD COLUMN recorded_cause TEXT;
COMMENT ON COLUMN jobs.runs.recorded_cause IS 'cause of a long run where the recorder knows it: for checking explanations only, never a feature';

CREATE VIEW jobs.vertices AS
WITH final AS (SELECT source, run_id, UNNEST(vertices) AS one FROM jobs.runs)
SELECT
    source,
    run_id,
    one.vertex AS vertex,
    one.stage AS stage,
    one.sku AS sku,
    one.started_at AS started_at,
    one.ended_at AS ended_at,
    one.cpu_s AS cpu_s,
    one.min_tokens AS min_tokens,
    one.mean_tokens AS mean_tokens,
    one.peak_tokens AS peak_tokens,
    one.read_bytes AS read_bytes,
    one.temp_bytes AS temp_bytes
FROM final;
COMMENT ON VIEW jobs.vertices IS 'Vertices of the runs, one row a vertex';
COMMENT ON COLUMN jobs.vertices.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.vertices.run_id IS 'run that it belongs to (jobs.runs)';
COMMENT ON COLUMN jobs.vertices.vertex IS 'number of the vertex within its run';
COMMENT ON COLUMN jobs.vertices.stage IS 'stage of the plan that the vertex belongs to';
COMMENT ON COLUMN jobs.vertices.sku IS 'machine type that it ran on';
COMMENT ON COLUMN jobs.vertices.started_at IS 'start, UTC';
COMMENT ON COLUMN jobs.vertices.ended_at IS 'end, UTC';
COMMENT ON COLUMN jobs.vertices.cpu_s IS 'CPU seconds over all processors';
COMMENT ON COLUMN jobs.vertices.min_tokens IS 'smallest number of tokens in use';
COMMENT ON COLUMN jobs.vertices.mean_tokens IS 'tokens in use, mean over the vertex';
COMMENT ON COLUMN jobs.vertices.peak_tokens IS 'largest number of tokens in use';
COMMENT ON COLUMN jobs.vertices.read_bytes IS 'bytes read';
COMMENT ON COLUMN jobs.vertices.temp_bytes IS 'largest size of what was spilled to disk, in bytes';

CREATE VIEW jobs.skylines AS
WITH final AS (SELECT source, run_id, UNNEST(skyline) AS one FROM jobs.runs)
SELECT
    source,
    run_id,
    one.at_s AS at_s,
    one.tokens AS tokens,
    one.guaranteed AS guaranteed
FROM final;
COMMENT ON VIEW jobs.skylines IS 'Token skylines of the runs (Figure 3), one row a step: what holds from at_s on until the next step of the run';
COMMENT ON COLUMN jobs.skylines.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.skylines.run_id IS 'run that it belongs to (jobs.runs)';
COMMENT ON COLUMN jobs.skylines.at_s IS 'seconds after the start of the run';
COMMENT ON COLUMN jobs.skylines.tokens IS 'tokens held';
COMMENT ON COLUMN jobs.skylines.guaranteed IS 'tokens guaranteed to the run at that time (its allocation); what it holds beyond is spare';

CREATE VIEW jobs.run_skus AS
WITH final AS (SELECT source, run_id, UNNEST(skus) AS one FROM jobs.runs)
SELECT
    source,
    run_id,
    one.sku AS sku,
    one.tokens AS tokens,
    one.free_tokens AS free_tokens,
    one.load_mean AS load_mean,
    one.load_sd AS load_sd
FROM final;
COMMENT ON VIEW jobs.run_skus IS 'SKUs offered to each run with their state just before its submission, one row a run and SKU';
COMMENT ON COLUMN jobs.run_skus.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.run_skus.run_id IS 'run that it belongs to (jobs.runs)';
COMMENT ON COLUMN jobs.run_skus.sku IS 'machine type';
COMMENT ON COLUMN jobs.run_skus.tokens IS 'tokens that it has';
COMMENT ON COLUMN jobs.run_skus.free_tokens IS 'tokens of it that were free';
COMMENT ON COLUMN jobs.run_skus.load_mean IS 'usage over quota, mean over 10 s, a ratio';
COMMENT ON COLUMN jobs.run_skus.load_sd IS 'standard deviation of that load, a ratio';
