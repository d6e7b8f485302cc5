"""Counters of the processors: time by kind, switches, processes, load, and how long tasks waited for a core."""

import os
from pathlib import Path

from tasks.workloads.record.measures import Source, gauge, rate

NS = 1e-9
TIMES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
WHAT = {
    "user": "programs at usual priority",
    "nice": "programs at low priority",
    "system": "the kernel on behalf of programs",
    "idle": "nothing",
    "iowait": "nothing, while a task waited for a disk",
    "irq": "device interrupts",
    "softirq": "deferred work of interrupts",
    "steal": "other guests of the hypervisor",
}


def parse_stat(text: str) -> dict[str, float]:
    """Clock ticks by kind of all processors together, and the single numbers of /proc/stat."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if name == "cpu":
            found |= {kind: float(ticks) for kind, ticks in zip(TIMES, fields, strict=False)}
        elif name in ("ctxt", "processes", "procs_running", "procs_blocked"):
            found[name] = float(fields[0])
    return found


def parse_loadavg(text: str) -> dict[str, float]:
    """Load over one minute, and the tasks there are."""
    one, _, _, tasks, _ = text.split()
    return {"load_1m": float(one), "tasks": float(tasks.partition("/")[2])}


def parse_schedstat(text: str) -> dict[str, float]:
    """Nanoseconds run and waited and slices, summed over the processors of /proc/schedstat (version 14 and later)."""
    found = {"ran_ns": 0.0, "waited_ns": 0.0, "slices": 0.0}
    lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    for fields in lines:
        ran, waited, slices = fields[7:10]
        found["ran_ns"] += float(ran)
        found["waited_ns"] += float(waited)
        found["slices"] += float(slices)
    return found if lines else {}


def cpu_sources(proc: Path) -> list[Source]:
    """What /proc says of the processors."""
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    times = tuple(
        rate(f"cpu.{kind}_cores", "core-seconds", f"processor time spent on {WHAT[kind]}", kind, scale=tick_s)
        for kind in TIMES
    )
    stat = (
        *times,
        rate("cpu.context_switches", "switches", "changes from one task to another", "ctxt"),
        rate("cpu.forks", "tasks", "processes and threads started", "processes"),
        gauge("cpu.running_tasks", "tasks", "tasks that run or could run", "procs_running"),
        gauge("cpu.blocked_tasks", "tasks", "tasks that wait for a disk", "procs_blocked"),
    )
    load = (
        gauge("load.one_minute", "tasks", "damped mean of running and blocked tasks over one minute", "load_1m"),
        gauge("load.tasks", "tasks", "tasks there are, idle ones included", "tasks"),
    )
    waits = (
        rate("sched.ran_cores", "core-seconds", "time that tasks ran", "ran_ns", scale=NS),
        rate("sched.waited_cores", "core-seconds", "time that tasks could have run and waited", "waited_ns", scale=NS),
        rate("sched.slices", "slices", "stretches of running", "slices"),
    )
    return [
        Source(proc / "stat", parse_stat, stat),
        Source(proc / "loadavg", parse_loadavg, load),
        Source(proc / "schedstat", parse_schedstat, waits),
    ]
