-- What whorl knows about its own work: files, quarantine, runs, models, champions, alarms, machines.
CREATE TABLE ops.files (
    batch_id TEXT PRIMARY KEY,
    word TEXT NOT NULL,
    source TEXT NOT NULL,
    reader TEXT NOT NULL,
    reader_version TEXT NOT NULL,
    options TEXT NOT NULL,
    origin TEXT NOT NULL,
    origin_sha256 TEXT NOT NULL,
    ordered_at TIMESTAMP NOT NULL,
    n_read BIGINT NOT NULL,
    n_kept BIGINT NOT NULL,
    n_quarantined BIGINT NOT NULL,
    landed_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE ops.files IS 'Files whose rows are in the warehouse';
COMMENT ON COLUMN ops.files.batch_id IS 'name of the manifest in the landing folder: hash of source, file, reader, version and options';
COMMENT ON COLUMN ops.files.word IS 'nodes, workloads or jobs';
COMMENT ON COLUMN ops.files.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN ops.files.reader IS 'reader of the format';
COMMENT ON COLUMN ops.files.reader_version IS 'version of the reader; a newer one replaces the rows of the file';
COMMENT ON COLUMN ops.files.options IS 'JSON of the options that change what the reader makes of the file';
COMMENT ON COLUMN ops.files.origin IS 'path or address that was read';
COMMENT ON COLUMN ops.files.origin_sha256 IS 'hash of the bytes that were read';
COMMENT ON COLUMN ops.files.ordered_at IS 'when this file was first read, UTC: later files update earlier rows';
COMMENT ON COLUMN ops.files.n_read IS 'rows read: kept plus quarantined';
COMMENT ON COLUMN ops.files.n_kept IS 'rows of the file that were usable';
COMMENT ON COLUMN ops.files.n_quarantined IS 'rows of the file in ops.quarantine';
COMMENT ON COLUMN ops.files.landed_at IS 'when this version of it was read, UTC';

CREATE TABLE ops.quarantine (
    batch_id TEXT NOT NULL,
    word TEXT NOT NULL,
    source TEXT NOT NULL,
    place BIGINT NOT NULL,
    reason TEXT NOT NULL,
    raw TEXT NOT NULL
);
COMMENT ON TABLE ops.quarantine IS 'Rows that could not be used, with file, place and reason';
COMMENT ON COLUMN ops.quarantine.batch_id IS 'file that the row stands in (ops.files)';
COMMENT ON COLUMN ops.quarantine.word IS 'nodes, workloads or jobs';
COMMENT ON COLUMN ops.quarantine.source IS 'where the rows come from';
COMMENT ON COLUMN ops.quarantine.place IS 'line or row in the file, from 1';
COMMENT ON COLUMN ops.quarantine.reason IS 'what is wrong with it';
COMMENT ON COLUMN ops.quarantine.raw IS 'the first 500 characters of the line; empty if names are pseudonymised';

CREATE TABLE ops.runs (
    run_id TEXT PRIMARY KEY,
    flow TEXT NOT NULL,
    word TEXT NOT NULL,
    source TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at TIMESTAMP NOT NULL,
    ended_at TIMESTAMP,
    parameters TEXT NOT NULL,
    figures TEXT NOT NULL,
    data_version TEXT NOT NULL,
    code_version TEXT NOT NULL
);
COMMENT ON TABLE ops.runs IS 'Runs of flows, kept so that they can be compared';
COMMENT ON COLUMN ops.runs.run_id IS 'id of the flow run';
COMMENT ON COLUMN ops.runs.flow IS 'name of the flow';
COMMENT ON COLUMN ops.runs.word IS 'nodes, workloads, jobs or whorl';
COMMENT ON COLUMN ops.runs.source IS 'source that it worked on';
COMMENT ON COLUMN ops.runs.status IS 'completed or failed';
COMMENT ON COLUMN ops.runs.started_at IS 'start, UTC';
COMMENT ON COLUMN ops.runs.ended_at IS 'end, UTC';
COMMENT ON COLUMN ops.runs.parameters IS 'JSON of the parameters';
COMMENT ON COLUMN ops.runs.figures IS 'JSON of the figures that it found';
COMMENT ON COLUMN ops.runs.data_version IS 'hash over the files of the source that it saw';
COMMENT ON COLUMN ops.runs.code_version IS 'version of whorl and commit';

CREATE TABLE ops.models (
    model_id TEXT PRIMARY KEY,
    word TEXT NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    trained_at TIMESTAMP NOT NULL,
    run_id TEXT NOT NULL,
    data_version TEXT NOT NULL,
    code_version TEXT NOT NULL,
    seed BIGINT NOT NULL,
    parameters TEXT NOT NULL,
    metrics TEXT NOT NULL
);
COMMENT ON TABLE ops.models IS 'Index of data/models/<word>/<model id>/model.json, which is the truth';
COMMENT ON COLUMN ops.models.model_id IS 'name of the folder of the model';
COMMENT ON COLUMN ops.models.word IS 'nodes, workloads or jobs';
COMMENT ON COLUMN ops.models.source IS 'source that it was trained on';
COMMENT ON COLUMN ops.models.kind IS 'what the model is';
COMMENT ON COLUMN ops.models.trained_at IS 'when, UTC';
COMMENT ON COLUMN ops.models.run_id IS 'flow run that trained it';
COMMENT ON COLUMN ops.models.data_version IS 'hash over the files that it was trained on';
COMMENT ON COLUMN ops.models.code_version IS 'version of whorl and commit';
COMMENT ON COLUMN ops.models.seed IS 'seed of the random numbers';
COMMENT ON COLUMN ops.models.parameters IS 'JSON of the parameters';
COMMENT ON COLUMN ops.models.metrics IS 'JSON of the metrics on held-out data';

CREATE TABLE ops.champions (
    word TEXT NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    model_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_at TIMESTAMP NOT NULL,
    PRIMARY KEY (word, source, kind, sequence)
);
COMMENT ON TABLE ops.champions IS 'Append-only: the last row of a word, source and kind names the model in use';
COMMENT ON COLUMN ops.champions.word IS 'nodes, workloads or jobs';
COMMENT ON COLUMN ops.champions.source IS 'source that the champion serves';
COMMENT ON COLUMN ops.champions.kind IS 'what the model is';
COMMENT ON COLUMN ops.champions.sequence IS 'number of the decision, from 1';
COMMENT ON COLUMN ops.champions.model_id IS 'model in use from this decision on';
COMMENT ON COLUMN ops.champions.reason IS 'promoted for which metric, or rolled back';
COMMENT ON COLUMN ops.champions.decided_at IS 'when, UTC';

CREATE TABLE ops.alarms (
    alarm_id TEXT PRIMARY KEY,
    word TEXT NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    message TEXT NOT NULL,
    evidence TEXT NOT NULL,
    raised_at TIMESTAMP NOT NULL,
    announced_at TIMESTAMP
);
COMMENT ON TABLE ops.alarms IS 'What the watch flows found; each alarm once';
COMMENT ON COLUMN ops.alarms.alarm_id IS 'hash of word, source, kind and subject';
COMMENT ON COLUMN ops.alarms.word IS 'nodes, workloads or jobs';
COMMENT ON COLUMN ops.alarms.source IS 'source of the rows';
COMMENT ON COLUMN ops.alarms.kind IS 'what happened, such as slow-run';
COMMENT ON COLUMN ops.alarms.subject IS 'what it happened to: a run, a job, a node';
COMMENT ON COLUMN ops.alarms.message IS 'one line for a person';
COMMENT ON COLUMN ops.alarms.evidence IS 'JSON of the figures behind it';
COMMENT ON COLUMN ops.alarms.raised_at IS 'when, UTC';
COMMENT ON COLUMN ops.alarms.announced_at IS 'when it was first sent out as an event, UTC; missing until then';

CREATE TABLE ops.machines (
    source TEXT NOT NULL,
    node TEXT NOT NULL,
    machine_type TEXT NOT NULL,
    PRIMARY KEY (source, node)
);
COMMENT ON TABLE ops.machines IS 'Machines, shared by all words';
COMMENT ON COLUMN ops.machines.source IS 'where the rows come from';
COMMENT ON COLUMN ops.machines.node IS 'name of the node';
COMMENT ON COLUMN ops.machines.machine_type IS 'type of the machine';
