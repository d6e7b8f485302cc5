"""The protocol: how well detectors find stressed executions and scores rank nodes, on anybody's benchmark results.

`splits` says what is learned from, what chooses a threshold and what is tested; `detection` judges executions and
measures that, `alarms` what alarms come to; `injection` spoils results where nobody knows of stress. `applications`
measures rankings. `network…` do the same for Perona's network; `protocol` puts all under the keys of README.md.
"""
