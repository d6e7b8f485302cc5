"""Records benchmarks on this machine: the six tools of Perona, on the machine as it is or on emulated nodes.

`campaign.record_nodes` makes a `plan` (or asks `steady` what to run next), builds each `place` (control groups by
`limits`, two network namespaces by `link`, `servers`), lets the `bench` run one execution after the other, `stress`
beside some of them, and keeps each in the `ledger`, which writes `parts`. `measure_doses` finds the ladder of stress.

A `sampler` reads `node_metrics` once a second from the first execution to the last: an execution is kept once the
second after it was sampled. Nodes that share a machine are recorded one after another. What a machine does not let us
do (a quota, a namespace, a shaped link) is listed with every part and never passed over in silence.
"""
