"""Executions of benchmarks as vectors on one scale (Perona, III-B): learned from training executions, saved as JSON."""
