"""Names of perf's events as names of counters: `perf.sched_switch`, `own.perf.page_faults`."""

import re

from tasks.workloads.counter_names import spelled
from tasks.workloads.telemetry import OWN_PREFIX, Counter, Kind

MODIFIERS = re.compile(r"^[ukhIGHpPSDWeb]+$")
SOFTWARE = {
    "alignment_faults", "bpf_output", "cgroup_switches", "context_switches", "cpu_clock", "cpu_migrations", "cs",
    "dummy", "emulation_faults", "faults", "major_faults", "migrations", "minor_faults", "page_faults", "task_clock",
}  # fmt: skip
UNITS = {"msec": "ms"}
MACHINE = ("", "/")


def counter_of(event: str, unit: str, group: str, cpu: str, *, has_several: bool) -> Counter:
    """The counter of an event. A tracepoint loses its subsystem (sched:sched_switch); what it counts stays.

    group: control group, "" or "/" for the machine. cpu: its processors, if counters are kept apart by them.
    has_several: whether there are more control groups than one, which then tell their counters apart."""
    head, colon, tail = event.partition(":")
    is_tracepoint = bool(colon) and not MODIFIERS.match(tail) and "/" not in event
    stem = spelled(tail if is_tracepoint else event.replace(":", "_")).replace(".", "_")
    name = f"perf.{stem}" + (f".{spelled(cpu)}" if cpu else "")
    own = group not in MACHINE
    if own:
        name = f"{OWN_PREFIX}{name}" + (f".{spelled(group)}" if has_several else "")
    is_software = is_tracepoint or spelled(head) in SOFTWARE
    kind: Kind = "software" if is_software else "hardware"
    return Counter(name, UNITS.get(unit, unit), kind, is_rate=True, scope="workload" if own else "machine")
