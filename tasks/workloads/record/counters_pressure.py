"""Pressure-stall information: the share of time in which some tasks, or all, waited for a resource."""

from pathlib import Path

from tasks.workloads.record.measures import Measure, Source, rate

US = 1e-6
RESOURCES = {"cpu": "a processor", "io": "a disk", "memory": "memory"}


def parse_pressure(text: str) -> dict[str, float]:
    """Microseconds lost so far: `some` and, where there is one, `full`."""
    lines = (line.split() for line in text.splitlines())
    return {fields[0]: float(fields[-1].partition("=")[2]) for fields in lines if fields}


def _measures(resource: str) -> tuple[Measure, ...]:
    waited = f"waited for {RESOURCES[resource]}"
    return (
        rate(f"pressure.{resource}_some", "s", f"time in which at least one task {waited}", "some", scale=US),
        rate(f"pressure.{resource}_full", "s", f"time in which all tasks {waited}", "full", scale=US),
    )


def pressure_sources(folder: Path, pattern: str = "{resource}") -> list[Source]:
    """The files of /proc/pressure, or of a control group (pattern "{resource}.pressure")."""
    return [
        Source(folder / pattern.format(resource=resource), parse_pressure, _measures(resource))
        for resource in RESOURCES
    ]
