-- Shapes are compared with other clusterings and numbers of bins in studies, not in every characterisation.
DROP TABLE jobs.shape_rivals;
DROP TABLE jobs.bin_comparisons;
