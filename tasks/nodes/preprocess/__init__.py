"""Executions of benchmarks as vectors on one scale (Perona, III-B): learned from training executions, saved as JSON.

`fitting` learns a Preprocessor, applies it, tells what became of each metric, and keeps it. Before it come `units`
(what the units of the tools mean), `unification` (one unit a metric, totals become rates) and `selection` (which
metrics count, and which way is better).
"""
