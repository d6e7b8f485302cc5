"""Counters that give the session away: a classifier that uses them is right for the wrong reason.

The level of free memory or disk, the clock, and totals since boot say when a run was made, and so which run it was.
The rule goes by names, so that it holds for anybody's telemetry; counters of the workload's own control group are its
own doing and stay."""

import re
from collections.abc import Iterable

from tasks.workloads.record.counters import GIVEAWAYS
from tasks.workloads.telemetry import Counter

TIME = re.compile(
    r"(^|[._])(timestamp|epoch|date|datetime|uptime|boot_?time|clock_seconds|time_seconds|unix_?time)($|[._])"
)
SPACE = re.compile(
    r"(^|[._])(disk|fs|filesystem|part|partition|swap|root)(_[a-z0-9]+)*_(free|used|avail|available|total|size|files)"
    r"($|[._])|(^|[._])(part_max_used|mbfs(free|used)|pct_u?fsused|ifree|iused|pct_iused)($|[._])"
)
MEMORY = re.compile(
    r"(^|[._])(mem|memory|meminfo)_(.*_)?(free|used|total|avail|available|buffers?|cached?|shared|active|"
    r"inactive|dirty|slab|mapped|anon|commit(ted)?|pct|bytes)($|[._])|"
    r"(^|[._])(kb[a-z]+|pct_(mem|swp|commit)[a-z]*|swap_?free|swap_?cached)($|[._])"
)
POWER = re.compile(r"(^|[._])(power|power_?watts?|watts?|temp|temperature|celsius|energy_(joules|uj))($|[._])")
TOTALS = re.compile(r"(_total|_since_boot|_count|_sum|_created|start_time_seconds)($|\.)")
REASONS = (
    (TIME, "time: says when the run was"),
    (SPACE, "space on a disk: drifts from run to run"),
    (MEMORY, "level of memory: what earlier runs left"),
    (POWER, "power or temperature: drifts with the machine"),
)
LEVELS = "a total that only grows: says when the run was"


def giveaway_of(counter: Counter) -> str:
    """Why a counter gives the session away; empty if it does not.

    A level is what does: rates (pages swapped in a second) and counters of the workload's own group never do. Of the
    counters of whorl's own recorder, those that its list names do as well, and no other level of memory."""
    if counter.scope == "workload" or counter.is_rate:
        return ""
    if counter.name in GIVEAWAYS:
        return GIVEAWAYS[counter.name]
    for pattern, reason in REASONS:
        if pattern.search(counter.name):
            return reason
    return LEVELS if TOTALS.search(counter.name) else ""


def giveaways_among(counters: Iterable[Counter]) -> dict[str, str]:
    """The counters that are to be left out of fingerprints, with the reason of each."""
    return {counter.name: reason for counter in counters if (reason := giveaway_of(counter))}
