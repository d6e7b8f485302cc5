"""Perona's network: codes of executions, what earlier ones promise of them, and how it is fitted and searched."""
