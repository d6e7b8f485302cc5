"""Executions of benchmarks as vectors on one scale (Perona, III-B): learned from training executions, saved as JSON.

`fitting` learns a Preprocessor, `transforming` applies it, `saving` keeps it, `decisions` tells what became of each
metric. On the way lie `recorded` (metric rows as numbers), `spelling`, `unit_definitions` and `units` (what the units
of the tools mean), `unification` (one unit a metric), `run_time` (totals become rates), `declared` (what the tools say
of their metrics), `spread`, `selection`, `orientation` and `scaling`.
"""
