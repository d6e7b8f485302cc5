"""Figures and one self-contained HTML page a word, from warehouse tables only."""
