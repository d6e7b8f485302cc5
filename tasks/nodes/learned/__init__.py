"""Perona's model on the executions of a source: trained, kept as a champion, asked, and watched by."""
