"""Records benchmarks on this machine: the six tools of Perona, on the machine as it is or on emulated nodes.

`campaign.record_nodes` follows a `plan` (or what the nodes lack), builds a `node_place` for each node
(`control_groups`, two network namespaces by `link`), lets the `bench` run one execution after the other, with stress
beside some of them, and keeps each; what the recorders of all words share stands in tasks/record/.
tests/studies/node_doses.py tells what doses of stress did.

A `sampler` reads each node's metrics once a second from the first execution to the last: an execution is kept once the
second after it was sampled. Nodes that share a machine are recorded one after another. What a machine does not let us
do (a quota, a namespace, a shaped link) is listed with every part and never passed over in silence.
"""
