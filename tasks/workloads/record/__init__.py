"""Records real workloads on this machine: programs run one after the other, and the machine is sampled meanwhile.

`campaign.record_workloads` makes a `plan`, and for each of its `rounds` prepares the `programs` afresh, runs them on
the `bench` (own control group, perf, sampler) and keeps each run in the `ledger`, which writes `parts`.
`live.record_live` samples what runs anyway.

    who                         reads
    counters_cpu … counters_irq /proc: the whole machine
    counters_group              the workload's control group, version 1 or 2: counters own.…
    counters_process            a process and its descendants, where there is no group (live only)
    perf_events, perf_child     perf stat, for the machine and the group

A sample reads open files on a fixed grid of the monotonic clock (`sampler`) and is understood after the run (`rates`).
Rates are differences over the real time between two readings. What the machine does not give is listed in the record of
each file and never filled in; a counter that fell was reset: NaN for that interval.
"""
