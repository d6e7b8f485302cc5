-- The typical distributions ("shapes") of a source and how each job matches them (Zhu et al. 2023, 4.2 and 5.2).
CREATE TABLE jobs.shapes (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    shape INTEGER NOT NULL,
    n_groups BIGINT NOT NULL,
    n_runs BIGINT NOT NULL,
    outlier_percent DOUBLE,
    p25_p75 DOUBLE,
    p95 DOUBLE,
    std DOUBLE,
    centre DOUBLE[] NOT NULL,
    bins_low DOUBLE NOT NULL,
    bins_high DOUBLE NOT NULL,
    n_bins INTEGER NOT NULL,
    inertia DOUBLE NOT NULL,
    min_support BIGINT NOT NULL,
    data_version TEXT NOT NULL,
    parameters TEXT NOT NULL,
    PRIMARY KEY (source, kind, shape)
);
COMMENT ON TABLE jobs.shapes IS 'Typical distributions of normalised runtimes, found in the history (D1) of a source';
COMMENT ON COLUMN jobs.shapes.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.shapes.kind IS 'ratio: runtime over the historic median of the job; delta: runtime minus it, in seconds';
COMMENT ON COLUMN jobs.shapes.shape IS 'number of the shape within its kind, from 0, by rising p25_p75';
COMMENT ON COLUMN jobs.shapes.n_groups IS 'jobs that formed the shape';
COMMENT ON COLUMN jobs.shapes.n_runs IS 'their runs in D1, which the figures of this row are taken from';
COMMENT ON COLUMN jobs.shapes.outlier_percent IS 'runs in the open upper bin (ratio at least bins_high, delta above it), in percent';
COMMENT ON COLUMN jobs.shapes.p25_p75 IS '75 % quantile minus 25 % quantile; a ratio, or seconds for delta';
COMMENT ON COLUMN jobs.shapes.p95 IS '95 % quantile; a ratio, or seconds for delta';
COMMENT ON COLUMN jobs.shapes.std IS 'sample standard deviation with the outliers; a ratio, or seconds for delta; missing for one run';
COMMENT ON COLUMN jobs.shapes.centre IS 'probability of each bin, n_bins of them, which sum to 1';
COMMENT ON COLUMN jobs.shapes.bins_low IS 'lower end of the bins inside; a ratio, or seconds for delta';
COMMENT ON COLUMN jobs.shapes.bins_high IS 'upper end of the bins inside; a ratio, or seconds for delta';
COMMENT ON COLUMN jobs.shapes.n_bins IS 'number of bins: equally wide ones inside, and an open one at either end';
COMMENT ON COLUMN jobs.shapes.inertia IS 'sum of squared distances of all jobs to the centre of their shape; the same for all shapes of a kind';
COMMENT ON COLUMN jobs.shapes.min_support IS 'runs in D1 that a job needed to take part: the parameter, or less where no job had so many';
COMMENT ON COLUMN jobs.shapes.data_version IS 'hash over the files of the source that the shapes were made from';
COMMENT ON COLUMN jobs.shapes.parameters IS 'JSON of the parameters';

-- No primary key: unique by source, kind, group_key and part, since all rows of a source are written at once.
CREATE TABLE jobs.group_shapes (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    group_key TEXT NOT NULL,
    part TEXT NOT NULL,
    n_runs BIGINT NOT NULL,
    median_s DOUBLE,
    median_source TEXT NOT NULL,
    label INTEGER,
    posterior DOUBLE[] NOT NULL
);
COMMENT ON TABLE jobs.group_shapes IS 'The shape of each job in each part of the log where it has runs with a median';
COMMENT ON COLUMN jobs.group_shapes.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.group_shapes.kind IS 'ratio or delta, as in jobs.shapes';
COMMENT ON COLUMN jobs.group_shapes.group_key IS 'the recurring job';
COMMENT ON COLUMN jobs.group_shapes.part IS 'D1 (history), D2 (training), D3 (test), or all runs of the job';
COMMENT ON COLUMN jobs.group_shapes.n_runs IS 'normalised runs in that part: the support of label and posterior';
COMMENT ON COLUMN jobs.group_shapes.median_s IS 'median runtime in D1, in seconds; missing where median_source is before';
COMMENT ON COLUMN jobs.group_shapes.median_source IS 'history: the median in D1; before: each run has that of the runs of the job that ended before its submission';
COMMENT ON COLUMN jobs.group_shapes.label IS 'number of the most probable shape; missing with fewer runs than the label support';
COMMENT ON COLUMN jobs.group_shapes.posterior IS 'probability of each shape given the runs, by number of the shape; they sum to 1';

CREATE TABLE jobs.shape_curve (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    k INTEGER NOT NULL,
    inertia DOUBLE NOT NULL,
    is_elbow BOOLEAN NOT NULL,
    PRIMARY KEY (source, kind, k)
);
COMMENT ON TABLE jobs.shape_curve IS 'Inertia of the clustering by number of shapes, which says how many there are';
COMMENT ON COLUMN jobs.shape_curve.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.shape_curve.kind IS 'ratio or delta, as in jobs.shapes';
COMMENT ON COLUMN jobs.shape_curve.k IS 'number of shapes';
COMMENT ON COLUMN jobs.shape_curve.inertia IS 'sum of squared distances of all jobs to the centre of their shape';
COMMENT ON COLUMN jobs.shape_curve.is_elbow IS 'true where the curve bends most; of no k where it does not bend';

CREATE TABLE jobs.shape_rivals (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    method TEXT NOT NULL,
    largest_share DOUBLE NOT NULL,
    n_groups BIGINT NOT NULL,
    PRIMARY KEY (source, kind, method)
);
COMMENT ON TABLE jobs.shape_rivals IS 'Other clusterings of the same distributions beside K-means: how lopsided they are';
COMMENT ON COLUMN jobs.shape_rivals.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.shape_rivals.kind IS 'ratio or delta, as in jobs.shapes';
COMMENT ON COLUMN jobs.shape_rivals.method IS 'clustering, with its linkage';
COMMENT ON COLUMN jobs.shape_rivals.largest_share IS 'share of the jobs in the largest cluster';
COMMENT ON COLUMN jobs.shape_rivals.n_groups IS 'jobs that were clustered; of many a sample';

CREATE TABLE jobs.bin_comparisons (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    n_bins INTEGER NOT NULL,
    stability DOUBLE NOT NULL,
    log_score DOUBLE,
    n_groups BIGINT NOT NULL,
    PRIMARY KEY (source, kind, n_bins)
);
COMMENT ON TABLE jobs.bin_comparisons IS 'How well different numbers of bins do: two random halves of the runs of each job compared';
COMMENT ON COLUMN jobs.bin_comparisons.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.bin_comparisons.kind IS 'ratio or delta, as in jobs.shapes';
COMMENT ON COLUMN jobs.bin_comparisons.n_bins IS 'number of bins';
COMMENT ON COLUMN jobs.bin_comparisons.stability IS 'adjusted Rand index between the labels of both halves: 1 where they agree, 0 as by chance';
COMMENT ON COLUMN jobs.bin_comparisons.log_score IS 'mean log density of the runs of one half under the shape of the other, in nats; larger is better; missing where no job has two runs';
COMMENT ON COLUMN jobs.bin_comparisons.n_groups IS 'jobs with enough runs to be halved';
