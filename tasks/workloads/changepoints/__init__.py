"""Where a series changes: Bayesian change points over run lengths, and offline methods behind the same interface.

`finding` is the way in: find_changepoints, find_changepoints_each. `standardise` prepares a series, `evidence` chooses
its season and noise, `predictive` holds what the Student-t predictive needs for each number of samples seen, `online`
keeps the run-length posterior while samples arrive (univariate, or one shared run length over all counters),
`segmentation` reads change points and their probabilities from it. `plain` is the textbook model alone, for comparison.
`offline` puts ruptures behind the same interface. `scores`, `tcpd` and `comparison` hold methods against annotated
series, `synthetic` makes series of known truth.

Sources: Adams and MacKay 2007 (Bayesian online change point detection); Hossain et al. 2022, CWD, equations 1 to 4;
van den Burg and Williams 2020 (annotated series and scores).
"""
