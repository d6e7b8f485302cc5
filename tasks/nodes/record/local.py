"""This machine as a node, and facts of it for the record that travels in every part."""

import os
import platform
import re

from tasks.machine import cpu_model, read_cgroups
from tasks.nodes.record.params import NodeParams, RecordParams


def machine_facts() -> dict[str, str | int]:
    """Processor, cores, memory in bytes, kernel and control groups."""
    return {
        "cpu_model": cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "cgroups": read_cgroups().layout,
        "python": platform.python_version(),
    }


def nodes_of(params: RecordParams) -> tuple[NodeParams, ...]:
    """The nodes that are recorded: this machine without limits, or the emulated ones."""
    if params.place == "emulated":
        return params.emulated
    name = node_name(params.node or platform.node()) or "local"
    machine_type = params.machine_type or f"{node_name(cpu_model())}-{os.cpu_count() or 0}-cores"
    return (NodeParams(name=name, machine_type=machine_type),)


def node_name(text: str) -> str:
    """A name as executions carry it: lower-case words and dashes, at most 60 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")
