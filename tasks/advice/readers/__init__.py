"""Readers of what advice is given on: tables of runs, machine types, memory profiles and scores."""
