"""Records real workloads on this machine: programs run one after the other, and the machine is sampled meanwhile.

`campaign.record_workloads` makes a `plan`, and for each of its rounds prepares the `programs` afresh, runs them on
the `bench` (own control group, perf, sampler) and keeps each run in `parts`; what recorders share stands in
tasks/record/.
`live.record_live` samples what runs anyway, `live.record_each` each control group.

    module      reads
    counters    /proc: the whole machine
    subjects    a control group, version 1 or 2, or a process and its descendants (live only): counters own.…
    perf        perf stat, for the machine and for control groups

A sample reads open files on a fixed grid of the monotonic clock (`sampler`) and is understood after the run.
Rates are differences over the real time between two readings. What the machine does not give is listed in the record of
each file and never filled in; a counter that fell was reset: NaN for that interval.
"""
