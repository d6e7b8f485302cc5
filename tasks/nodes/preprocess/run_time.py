"""Totals that grow with the run become rates: bytes moved become bytes a second (the authors' code; not in the paper).

Only metrics that the tool's facts call cumulative are divided, by a time of the same execution. Every total is divided
as it was read: a time that is itself divided by another still divides in seconds."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from tasks.nodes.preprocess.recorded import Floats
from tasks.nodes.preprocess.unification import Facts, Unified
from tasks.nodes.tools.facts import DURATION

SECONDS = "s"


def divisors(columns: pd.DataFrame, facts: Facts) -> list[str]:
    """For each column the metric that it is to be divided by, `duration` for that of the execution, or empty."""
    keys = zip(columns["benchmark"], columns["metric"], strict=True)
    found = (facts.get(benchmark, {}).get(metric) for benchmark, metric in keys)
    return [(fact.is_cumulative_over or "") if fact else "" for fact in found]


def as_rates(unified: Unified, columns: pd.DataFrame, divided_by: Sequence[str], duration_s: Floats) -> Unified:
    """The values, totals divided by their time.

    columns: type, metric, base. divided_by: as divisors gives it. duration_s: (n_executions,) of the executions. A
    total of an execution without a time above 0 is left out: it is not comparable with others."""
    if not any(divided_by):
        return unified
    place = {key: at for at, key in enumerate(zip(columns["type"], columns["metric"], strict=True))}
    bases = columns["base"].tolist()
    value = unified.value.copy()
    for at, (kind, metric) in enumerate(zip(columns["type"], divided_by, strict=True)):
        if not metric:
            continue
        seconds = duration_s
        if metric != DURATION:
            over = place.get((kind, metric))
            seconds = np.full(len(duration_s), np.nan)
            if over is not None and bases[over] == SECONDS:
                seconds[unified.execution[unified.of(over)]] = unified.value[unified.of(over)]
        own = seconds[unified.execution[unified.of(at)]]
        value[unified.of(at)] /= np.where(own > 0, own, np.nan)
    return _without_missing(replace(unified, value=value))


def _without_missing(unified: Unified) -> Unified:
    is_there = np.isfinite(unified.value)
    counts = np.concatenate([[0], np.cumsum(is_there)])
    return replace(
        unified,
        execution=unified.execution[is_there],
        value=unified.value[is_there],
        edges=counts[unified.edges].astype(np.int64),
    )
