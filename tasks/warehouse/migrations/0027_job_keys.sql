-- What a job is in a source, decided once; sources of before keep what their files were grouped by.
CREATE TABLE jobs.keys (
    source TEXT PRIMARY KEY,
    parts TEXT NOT NULL,
    reason TEXT NOT NULL,
    better TEXT NOT NULL,
    is_set BOOLEAN NOT NULL,
    data_version TEXT NOT NULL
);
COMMENT ON TABLE jobs.keys IS 'What a job is in each source: which runs are of one job, and why';
COMMENT ON COLUMN jobs.keys.source IS 'where the rows come from; sources never mix';
COMMENT ON COLUMN jobs.keys.parts IS 'what runs of one job share, such as user,cpus,limit; empty: name and plan, or name, user and cpus';
COMMENT ON COLUMN jobs.keys.reason IS 'why, as a sentence';
COMMENT ON COLUMN jobs.keys.better IS 'what would predict better by now, and the command that changes it; empty if nothing does';
COMMENT ON COLUMN jobs.keys.is_set IS 'true if a user has set it';
COMMENT ON COLUMN jobs.keys.data_version IS 'hash over the files of the source that it was compared on; empty while they are grouped anew';
INSERT INTO jobs.keys
SELECT DISTINCT source, '', 'runs of one job share name and plan, or name, user and cpus, as they did before', '', false, ''
FROM ops.files WHERE word = 'jobs' AND source NOT IN (SELECT source FROM ops.files WHERE word = 'jobs' AND options LIKE '%"by":%');
