"""The machine that a campaign ran on, for the record that travels in every part file."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import version

from tasks.machine import cpu_model

UNKNOWN = "unknown"


def _stress_version() -> str:
    if not shutil.which("stress-ng"):
        return "not installed"
    told = subprocess.run(["stress-ng", "--version"], capture_output=True, text=True, check=False).stdout.split()
    return next((word for word in told if word[:1].isdigit()), UNKNOWN)


def machine_facts() -> dict[str, str | int]:
    """CPU model, cores, memory in bytes, kernel, and the versions that shaped the recording."""
    return {
        "cpu_model": cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "duckdb": version("duckdb"),
        "stress_ng": _stress_version(),
    }
