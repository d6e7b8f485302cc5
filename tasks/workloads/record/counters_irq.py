"""Counters of interrupts and of the work that they defer, summed over the processors."""

from pathlib import Path

from tasks.workloads.record.measures import Source, rate

DEVICES = "devices"  # all lines of /proc/interrupts that a number names

INTERRUPTS = (
    rate("irq.devices", "interrupts", "interrupts of disks, network and other devices", DEVICES),
    rate("irq.local_timer", "interrupts", "timers of the processors", "LOC", "arch_timer"),
    rate("irq.rescheduling", "interrupts", "one processor asks another to schedule", "RES", "IPI0"),
    rate("irq.function_call", "interrupts", "one processor has another run a function", "CAL", "IPI1"),
    rate("irq.tlb_shootdown", "interrupts", "one processor has others forget address translations", "TLB"),
    rate("irq.hypervisor", "interrupts", "calls of the hypervisor", "HYP"),
)
SOFTIRQS = (
    rate("softirq.timer", "runs", "timers that ran out", "TIMER"),
    rate("softirq.hrtimer", "runs", "high-resolution timers that ran out", "HRTIMER"),
    rate("softirq.net_rx", "runs", "packets taken in", "NET_RX"),
    rate("softirq.net_tx", "runs", "packets sent off", "NET_TX"),
    rate("softirq.block", "runs", "disk requests completed", "BLOCK"),
    rate("softirq.tasklet", "runs", "small deferred work", "TASKLET"),
    rate("softirq.sched", "runs", "load balanced between processors", "SCHED"),
    rate("softirq.rcu", "runs", "read-copy-update callbacks", "RCU"),
)


def parse_interrupts(text: str) -> dict[str, float]:
    """/proc/interrupts or /proc/softirqs: the sum over processors by name; numbered lines together as `devices`."""
    lines = text.splitlines()
    n_processors = len(lines[0].split()) if lines else 0
    found: dict[str, float] = {}
    for line in lines[1:]:
        name, _, rest = line.partition(":")
        counts = []
        for field in rest.split()[:n_processors]:
            if not field.isdigit():
                break
            counts.append(int(field))
        key = DEVICES if name.strip().isdigit() else name.strip()
        found[key] = found.get(key, 0.0) + sum(counts)
    return found


def interrupt_sources(proc: Path) -> list[Source]:
    """What /proc says of interrupts."""
    return [
        Source(proc / "interrupts", parse_interrupts, INTERRUPTS),
        Source(proc / "softirqs", parse_interrupts, SOFTIRQS),
    ]
