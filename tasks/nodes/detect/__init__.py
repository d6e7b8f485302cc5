"""Verdicts on executions: how far they deviate, which are degraded, why, and what a false alarm costs."""
