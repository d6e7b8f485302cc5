"""How like two fingerprints are: distances between sequences of phases, and thresholds on them (CWD, V-D)."""
