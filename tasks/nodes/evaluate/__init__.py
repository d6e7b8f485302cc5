"""The protocol: how well plain answers find stressed executions and rank nodes, on anybody's benchmark results.

`reading` has the history of files, `splits` says what is learned from and what is tested.
`detection` judges executions, `thresholds` and `alarms` measure that. `matrices` has one row a node, `rivals` says what
each way of ranking makes of it, `agreement` and `correlation` measure that against applications. `protocol` puts all
under the keys of README.md, `tables` writes Parquet.
"""
