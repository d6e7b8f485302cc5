"""Records real workloads on this machine: `campaign.record_workloads` makes a `plan`, prepares the `programs` of each
round, runs them on the `bench` (own control group, perf, sampler) and keeps each run in `parts`. `bench.record_live`,
`record_each` sample what runs anyway. `counters` reads the whole machine, `subjects` a control group or a process.

A sample reads open files on a fixed grid of the monotonic clock (`sampler`) and is understood after the run."""
