"""Perona's network: encoder, decoder, aggregation over earlier executions, and its parameters."""
