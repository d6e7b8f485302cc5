"""The protocol: how well workloads are told apart, and known from unknown, on anybody's labelled telemetry.

`reading` has the runs of files with their labels, `windows` cuts long traces, `splits` says what is learned from and
what is tested, `segmented` keeps what does not depend on a split. `known`, `pairs`, `online`, `thresholds`, `unknown`
and `paper_unknown` measure; `protocol` puts their figures under the keys of README.md, `tables` writes Parquet.
"""
