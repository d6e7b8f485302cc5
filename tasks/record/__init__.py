"""What the recorders of the four words share: each keeps in its own `record/` what it measures and what a row is."""
