"""Which workloads a run is of, known or not, how sure, and why.

`counters` says what is compared, `fingerprints` how far a run is from what is known, by itself or as a sum, `model`
learns and keeps that with what turns deviations into probabilities (`logistic`), `identification` says what a run is,
and why. `phases` is the paper's fingerprint (CWD, V-A to V-C), for its pages and for `evaluate.paper`.
"""
