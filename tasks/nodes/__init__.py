"""Nodes: benchmarks of machines, read, unified, ranked and watched, one task a file."""
