"""What was found, in one sentence each: a late run, a job that has changed."""

import math
from collections.abc import Mapping
from typing import Any

from tasks.quantities import duration, number, share, times

LOG_10 = math.log(10)
MOST_POWER = 6  # of ten: a factor beyond that is said as such


def late_words(run: Mapping[str, Any]) -> str:
    """One row of `late.late_runs` as a sentence: how long it runs, against which limit, and what to expect."""
    limit = f"{number(100 * run['level'])} % of its runs were expected to take at most {duration(run['limit_s'])}"
    if not run["is_running"]:
        return f"{run['group_key']}: run {run['run_id']} took {duration(run['elapsed_s'])}; {limit}"
    left = f"half of the runs that last so long end within {duration(run['left_50_s'])}"
    if run["is_beyond"]:
        left = f"longer than anything expected, so by a rule of thumb {left}"
    return f"{run['group_key']}: run {run['run_id']} is going on since {duration(run['elapsed_s'])}; {limit}; {left}"


def drift_words(job: Mapping[str, Any]) -> str:
    """One row of the table of `drift.find_drift` as a sentence: what changed, by how much, and how sure that is."""
    medians = f"median {duration(job['median_before_s'])}, now {duration(job['median_after_s'])}"
    if math.isfinite(job["median_factor"]):
        medians += f" ({times(job['median_factor'])})"
    spreads = f"middle half within {duration(job['spread_before_s'])}, now {duration(job['spread_after_s'])}"
    sure = f"{job['n_before']:,} runs before, {job['n_after']:,} since"
    if not job["has_changed"]:
        return f"{job['group_key']}: no change that could not be luck; {medians}; {spreads}; {sure}"
    sure += f", expected share of false alarms at most {share(job['q_value'])}"
    kind = "changed"
    if job["has_drifted"]:
        kind = f"drifted from shape {job['shape_before']} to shape {job['shape_after']}"
        sure += f", two shapes {_factor(job['log_bayes_factor'])} likelier than one"
    return f"{job['group_key']}: {kind}; {medians}; {spreads}; {sure}"


def _factor(log_factor: float) -> str:
    power = log_factor / LOG_10
    return f"over 10^{MOST_POWER} ×" if power > MOST_POWER else times(math.exp(log_factor))
