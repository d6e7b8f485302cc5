-- What is made of telemetry (Hossain et al. 2022): phases, identifications, and what models and evaluations measured.
CREATE TABLE workloads.phases (
    source TEXT NOT NULL,
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    counter TEXT NOT NULL,
    phase INTEGER NOT NULL,
    start_sample BIGINT NOT NULL,
    end_sample BIGINT NOT NULL,
    probability DOUBLE,
    mean DOUBLE NOT NULL,
    median DOUBLE NOT NULL,
    variance DOUBLE NOT NULL,
    adf DOUBLE,
    q10 DOUBLE NOT NULL,
    q25 DOUBLE NOT NULL,
    q75 DOUBLE NOT NULL,
    q90 DOUBLE NOT NULL,
    PRIMARY KEY (source, run_id, counter, phase)
);
COMMENT ON TABLE workloads.phases IS 'Fingerprints: the phases of each counter of a run, and their summaries on the normalised scale';
COMMENT ON COLUMN workloads.phases.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN workloads.phases.run_id IS 'run that it is a fingerprint of (workloads.runs)';
COMMENT ON COLUMN workloads.phases.key IS 'hash of the samples and of how they were cut; a run whose key has not changed is not done again';
COMMENT ON COLUMN workloads.phases.counter IS 'what was counted (workloads.counters)';
COMMENT ON COLUMN workloads.phases.phase IS 'number of the phase within its counter, from 1';
COMMENT ON COLUMN workloads.phases.start_sample IS 'first sample of the phase, from 0';
COMMENT ON COLUMN workloads.phases.end_sample IS 'sample after its last one';
COMMENT ON COLUMN workloads.phases.probability IS 'probability of the change that begins it; missing for a first phase and where the method gives none';
COMMENT ON COLUMN workloads.phases.mean IS 'mean of its samples, normalised; 0 in a phase without a value, as all its summaries';
COMMENT ON COLUMN workloads.phases.median IS 'median of its samples, normalised';
COMMENT ON COLUMN workloads.phases.variance IS 'variance of its samples, normalised';
COMMENT ON COLUMN workloads.phases.adf IS 'augmented Dickey–Fuller statistic; missing where it is undetermined: short or constant phases';
COMMENT ON COLUMN workloads.phases.q10 IS '10 % quantile of its samples, normalised';
COMMENT ON COLUMN workloads.phases.q25 IS '25 % quantile of its samples, normalised';
COMMENT ON COLUMN workloads.phases.q75 IS '75 % quantile of its samples, normalised';
COMMENT ON COLUMN workloads.phases.q90 IS '90 % quantile of its samples, normalised';

CREATE TABLE workloads.run_phases (
    source TEXT NOT NULL,
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    phase INTEGER NOT NULL,
    start_sample BIGINT NOT NULL,
    end_sample BIGINT NOT NULL,
    PRIMARY KEY (source, run_id, phase)
);
COMMENT ON TABLE workloads.run_phases IS 'Phases of the workload as a whole, over all counters of a run (section V-D)';
COMMENT ON COLUMN workloads.run_phases.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN workloads.run_phases.run_id IS 'run that they are the phases of (workloads.runs)';
COMMENT ON COLUMN workloads.run_phases.key IS 'as in workloads.phases';
COMMENT ON COLUMN workloads.run_phases.phase IS 'number of the phase, from 1';
COMMENT ON COLUMN workloads.run_phases.start_sample IS 'first sample of the phase, from 0';
COMMENT ON COLUMN workloads.run_phases.end_sample IS 'sample after its last one';

CREATE TABLE workloads.identifications (
    source TEXT NOT NULL,
    run_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    identified_at TIMESTAMP NOT NULL,
    workload TEXT,
    is_known BOOLEAN NOT NULL,
    confidence DOUBLE NOT NULL,
    unknown_score DOUBLE NOT NULL,
    nearest TEXT NOT NULL,
    nearest_distance DOUBLE NOT NULL,
    reasons TEXT[] NOT NULL,
    proxy TEXT,
    PRIMARY KEY (source, run_id, model_id)
);
COMMENT ON TABLE workloads.identifications IS 'What ran, as a model says: one row a run and model, replaced when the run is identified again';
COMMENT ON COLUMN workloads.identifications.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN workloads.identifications.run_id IS 'run that was identified (workloads.runs)';
COMMENT ON COLUMN workloads.identifications.model_id IS 'model that identified it, in ops.models';
COMMENT ON COLUMN workloads.identifications.identified_at IS 'when, UTC';
COMMENT ON COLUMN workloads.identifications.workload IS 'what it was; missing where it is none of the known ones';
COMMENT ON COLUMN workloads.identifications.is_known IS 'false: unknown; nearest then says what it is most like';
COMMENT ON COLUMN workloads.identifications.confidence IS 'probability that it was this workload, or that it was none of the known ones, from 0 to 1';
COMMENT ON COLUMN workloads.identifications.unknown_score IS 'how unlike the known workloads it is, from 0 to 1';
COMMENT ON COLUMN workloads.identifications.nearest IS 'known workload that it is nearest to';
COMMENT ON COLUMN workloads.identifications.nearest_distance IS 'distance to the nearest run of that workload';
COMMENT ON COLUMN workloads.identifications.reasons IS 'counters and phases that speak for and against it, in words';
COMMENT ON COLUMN workloads.identifications.proxy IS 'public workload that it is most like; missing where none is known';

CREATE TABLE workloads.model_figures (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    key TEXT NOT NULL,
    value DOUBLE,
    reason TEXT,
    PRIMARY KEY (source, model_id, key)
);
COMMENT ON TABLE workloads.model_figures IS 'What each training measured on the runs that it held out';
COMMENT ON COLUMN workloads.model_figures.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN workloads.model_figures.model_id IS 'the model, in ops.models';
COMMENT ON COLUMN workloads.model_figures.key IS 'name of the figure, <part>.<measure>[.<slice>]';
COMMENT ON COLUMN workloads.model_figures.value IS 'the figure; missing where it cannot be had';
COMMENT ON COLUMN workloads.model_figures.reason IS 'why it is missing; missing beside a figure';

CREATE TABLE workloads.confusions (
    source TEXT NOT NULL,
    model_id TEXT NOT NULL,
    workload TEXT NOT NULL,
    identified_as TEXT NOT NULL,
    n_runs BIGINT NOT NULL,
    PRIMARY KEY (source, model_id, workload, identified_as)
);
COMMENT ON TABLE workloads.confusions IS 'Which workload was taken for which, among the runs that a training held out';
COMMENT ON COLUMN workloads.confusions.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN workloads.confusions.model_id IS 'the model, in ops.models';
COMMENT ON COLUMN workloads.confusions.workload IS 'what ran';
COMMENT ON COLUMN workloads.confusions.identified_as IS 'what the model took it for; empty: unknown';
COMMENT ON COLUMN workloads.confusions.n_runs IS 'held-out runs';

CREATE TABLE workloads.evaluation_figures (
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    value DOUBLE,
    reason TEXT,
    data_version TEXT NOT NULL,
    evaluated_at TIMESTAMP NOT NULL,
    PRIMARY KEY (source, key)
);
COMMENT ON TABLE workloads.evaluation_figures IS 'The last evaluation of a source: how well its workloads can be told apart';
COMMENT ON COLUMN workloads.evaluation_figures.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN workloads.evaluation_figures.key IS 'name of the figure, <part>.<measure>[.<slice>]';
COMMENT ON COLUMN workloads.evaluation_figures.value IS 'the figure; missing where it cannot be had';
COMMENT ON COLUMN workloads.evaluation_figures.reason IS 'why it is missing; missing beside a figure';
COMMENT ON COLUMN workloads.evaluation_figures.data_version IS 'files that the source had';
COMMENT ON COLUMN workloads.evaluation_figures.evaluated_at IS 'when, UTC';
