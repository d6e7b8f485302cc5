"""Executions beside earlier ones of the same node and type: inputs, graphs and batches of Perona's network."""
