"""Figures of identification from a part of a run: `online.accuracy.5s`, `window.accuracy`."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from tasks.workloads.evaluate.cohort import Cohort
from tasks.workloads.evaluate.figures import Figures, put_summary
from tasks.workloads.evaluate.known import METHODS, Trial
from tasks.workloads.evaluate.known_figures import FIRST
from tasks.workloads.evaluate.params import EvaluateParams
from tasks.workloads.evaluate.partial import Partial, from_the_middle, online
from tasks.workloads.evaluate.scores import summary_of


@dataclass(frozen=True)
class PartialResults:
    """figures; tables: online and windows, one row a split and method."""

    figures: Figures
    tables: dict[str, pd.DataFrame]


def partial_results(cohort: Cohort, trials: Sequence[Trial], params: EvaluateParams, reason: str) -> PartialResults:
    """First seconds and windows from the middle, on these trials. reason: why there are none."""
    figures: Figures = {}
    tables = []
    none = Partial(pd.DataFrame(), reason)
    for seconds in sorted(set(params.online_s)):
        found = online(cohort, trials, seconds, params.identify) if trials else none
        key = f"{seconds:g}s"
        _put(figures, f"online.accuracy.{key}", found, "trees", "accuracy")
        _put(figures, f"online.accuracy.{key}.whole", found, "whole", "accuracy")
        _put(figures, f"online.confidence.{key}", found, "trees", "confidence")
        tables.append(found.table.assign(seconds=seconds))
    middle = from_the_middle(cohort, trials, params.identify) if trials else none
    for measure in ("accuracy", "macro_f1"):
        _put(figures, f"window.{measure}", middle, FIRST, measure)
        for method in METHODS:
            _put(figures, f"window.{measure}.{method}", middle, method, measure)
    return PartialResults(figures, {"online": pd.concat(tables, ignore_index=True), "windows": middle.table})


def _put(figures: Figures, key: str, found: Partial, method: str, measure: str) -> None:
    values = found.table[found.table["method"] == method][measure].tolist() if len(found.table) else []
    put_summary(figures, key, summary_of(values), found.reason)
