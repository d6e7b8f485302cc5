"""How well workloads are told apart, known from unknown, on quiet and on shared machines: the protocol of `evaluate`.

`items` reads, cuts and splits, `known` scores methods beside plain baselines, `conditions` asks on shared machines and
of unknown workloads, `paper` reproduces the paper, `protocol` puts all of it together.
"""
