"""What the names of other people's counters say: a name in our spelling, its unit, and whether it is a rate."""

import re

from tasks.workloads.telemetry import OWN_PREFIX, Counter, Scope

NOT_IN_NAMES = re.compile(r"[^a-z0-9_.]+")
JOINS = re.compile(r"_{2,}")
EDGES = re.compile(r"_*\._*")
RATE = re.compile(r"(_?per_s(ec(ond)?)?|/s(ec(ond)?)?)(?=$|[)\]])", re.IGNORECASE)
UNIT = re.compile(r"\((?:in )?([^()]+)\)\s*$")
SIGNS = {"%": "_pct_", "/": "_per_", "+": "_plus_"}
RATE_GROUPS = {"cpu", "disk", "irq", "net", "perf", "pressure", "softirq", "vm"}  # of whorl's own names


def spelled(raw: str) -> str:
    """A name in lower case, with words joined by ``_``; dots stay. Empty if no letter or digit is left."""
    text = raw.strip().lower()
    for sign, word in SIGNS.items():
        text = text.replace(sign, word)
    text = JOINS.sub("_", NOT_IN_NAMES.sub("_", text))
    return EDGES.sub(".", text).strip("._")


def scope_of(name: str) -> Scope:
    """Counters called ``own.…`` are of the workload's control group."""
    return "workload" if name.startswith(OWN_PREFIX) else "machine"


def described(raw: str, group: str = "") -> Counter:
    """A counter from its name in somebody's table.

    The unit is what stands in brackets at the end: ``latency (in ns)``. A name that ends in ``_per_s``, ``/s`` or
    ``/sec`` is a rate. group: put before a dot."""
    unit = UNIT.search(raw)
    name = spelled(raw)
    name = f"{group}.{name}" if group and name else name
    return Counter(name, unit[1].strip() if unit else "", "unknown", bool(RATE.search(raw)), scope_of(name))


def described_own(raw: str) -> Counter:
    """A counter of whorl's own CSV, which has no units: those of RATE_GROUPS are rates (memory and load are gauges)."""
    counter = described(raw)
    group, dot, _ = counter.name.removeprefix(OWN_PREFIX).partition(".")
    is_rate = counter.is_rate or bool(dot and group in RATE_GROUPS)
    return Counter(counter.name, counter.unit, counter.kind, is_rate, counter.scope)
