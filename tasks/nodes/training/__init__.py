"""Perona's network is fitted, and its parameters are searched."""
