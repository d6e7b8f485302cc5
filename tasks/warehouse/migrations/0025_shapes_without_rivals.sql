-- Shapes are compared with other clusterings and numbers of bins, and reasons with recorded causes, in studies and tests.
DROP TABLE jobs.shape_rivals;
DROP TABLE jobs.bin_comparisons;
DROP TABLE jobs.cause_checks;
