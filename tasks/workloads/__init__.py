"""Workloads: runs told apart by their telemetry, one task a file."""
