"""Which workload a run is of, known or not, and why: fingerprints, boosted trees and an open-set score (CWD, V, VI).

`model` learns from labelled runs, `identification` judges a run, `saving` keeps a model in files without code. On the
way lie `counters` (what is compared), `cutting` and `summarising` (phases), `fingerprinting`, `levels` (whole-run
statistics), `features` (the table that `trees` read), `neighbours` (how far runs lie apart), `evidence`, `calibration`
and `open_set` (known or unknown). `forest` is the plain baseline.
"""
