"""How the next run of a recurring job will vary: features, shapes as classes, and predicted runtime distributions.

`rows` reads the runs, `periods` splits them by time, `features` says what was known before each, `targets` labels
them with shapes, `classifiers` learn the labels, `predictor` turns them into distributions of the runtime in seconds,
and `evaluation` scores it all on runs that came later. Source: Zhu et al. 2023, section 5.
"""
