"""Which workloads a run is of, known or not, how sure, and why.

`counters` says what is compared, `mixture` explains a run by the fewest known fingerprints that add up to it, `model`
learns and keeps them with what turns deviations into probabilities, `identification` says what a run is, `reasons` why.
`phases` is the paper's fingerprint (CWD, V-A to V-C), for its pages and for `evaluate.paper`.
"""
