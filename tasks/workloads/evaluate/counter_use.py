"""Which counters an evaluation used, and why it left out the others."""

from collections.abc import Sequence

import pandas as pd

from tasks.workloads.evaluate.figures import Figures
from tasks.workloads.giveaways import giveaway_of
from tasks.workloads.telemetry import Counter, Telemetry

NAMED = 20  # counters that a figure names; the table has all
NOT_COMMON, OTHER_SCOPE = "not in every run", "of a scope that was not asked for"


def counter_table(runs: Sequence[Telemetry], used: Sequence[Counter]) -> pd.DataFrame:
    """One row a counter of any run, by name: counter, n_runs, is_used, reason (empty where it is used)."""
    names = {counter.name for counter in used}
    n_runs: dict[str, int] = {}
    about: dict[str, Counter] = {}
    for run in runs:
        for counter in run.counters:
            n_runs[counter.name] = n_runs.get(counter.name, 0) + 1
            about.setdefault(counter.name, counter)
    rows = [
        {"counter": name, "n_runs": n, "is_used": name in names, "reason": _reason(about[name], n, len(runs), names)}
        for name, n in sorted(n_runs.items())
    ]
    return pd.DataFrame(rows)


def _reason(counter: Counter, n: int, n_runs: int, used: set[str]) -> str:
    if counter.name in used:
        return ""
    return giveaway_of(counter) or (NOT_COMMON if n < n_runs else OTHER_SCOPE)


def counter_figures(table: pd.DataFrame) -> Figures:
    """counters.n, and how many were left out as give-aways or because not every run has them, with the first names."""
    is_missing = table["reason"] == NOT_COMMON
    given = table[~table["is_used"] & ~is_missing & (table["reason"] != OTHER_SCOPE)]
    return {
        "counters.n": int(table["is_used"].sum()),
        "counters.giveaways": len(given),
        "counters.not_common": int(is_missing.sum()),
        "counters.not_common.names": ", ".join(table["counter"][is_missing].head(NAMED)),
        "counters.giveaways.names": ", ".join(given["counter"].head(NAMED)),
    }
