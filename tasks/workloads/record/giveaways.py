"""Counters that tell when a run was recorded rather than what ran: recorded, and left out of fingerprints."""

GIVEAWAYS: dict[str, str] = {
    "memory.free_bytes": "shrinks as the page cache fills, from run to run",
    "memory.available_bytes": "follows what other programs hold, which differs between rounds",
    "memory.cached_bytes": "the page cache of the whole machine grows from run to run",
    "memory.buffer_bytes": "blocks of disks stay in memory after the run that read them",
    "memory.active_bytes": "holds the page cache of earlier runs",
    "memory.inactive_bytes": "holds the page cache of earlier runs",
    "memory.slab_bytes": "the kernel's objects for files stay after the run that opened them",
    "memory.committed_bytes": "follows what other programs hold, which differs between rounds",
    "load.one_minute": "remembers the run before for more than a minute",
    "load.tasks": "counts the idle tasks of the whole machine, which differ between rounds",
    "net.sockets": "counts the sockets of the whole machine, which differ between rounds",
}
NOT_RECORDED: dict[str, str] = {
    "free disk space": "shrinks over a campaign",
    "uptime and time of day": "name the run by themselves",
    "sizes (total memory, swap, huge pages)": "the same in every run of a machine; they tell machines apart",
    "totals since boot": "only their differences are kept",
}
