"""The machine that workloads were recorded on, for the record that travels in every part file."""

import os
import platform
import re

from tasks.machine import counts_hardware_events, cpu_model, read_cgroups


def machine_facts() -> dict[str, str | int | bool | None]:
    """Processor, cores, memory in bytes, kernel, control groups, and whether hardware events can be counted."""
    return {
        "cpu_model": cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "cgroups": read_cgroups().layout,
        "has_pmu": counts_hardware_events(),
        "python": platform.python_version(),
    }


def machine_name(asked: str) -> str:
    """The name asked for, else one made of the processor's name and the number of cores."""
    if asked:
        return asked
    words = re.sub(r"[^a-z0-9]+", "-", cpu_model().lower()).strip("-")
    return f"{words}-{os.cpu_count() or 0}-cores"
