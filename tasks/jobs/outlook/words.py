"""What was found of a job that has changed, in one sentence."""

import math
from collections.abc import Mapping
from typing import Any

from tasks.quantities import duration, share, times

LOG_10 = math.log(10)
MOST_POWER = 6  # of ten: a factor beyond that is said as such


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
