"""How well labels were told: accuracy, and precision, recall and F1 averaged over workloads; and figures by key.

A figure is `<part>.<measure>[.<slice>]`, None with a reason beside it where it cannot be had."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.workloads.telemetry import FloatArray

Figures = dict[str, Any]
ROUNDING = 1e-9  # of a number of runs
MEASURES = ("accuracy", "macro_f1", "precision", "recall")


@dataclass(frozen=True)
class Score:
    """One split. macro_f1, precision, recall: unweighted means over the workloads that were told or true."""

    accuracy: float
    macro_f1: float
    precision: float
    recall: float
    n: int


@dataclass(frozen=True)
class Summary:
    """Mean over splits, and their standard deviation (of the sample; None for one split)."""

    mean: float
    deviation: float | None
    n_splits: int


def score_of(truth: Sequence[str], told: Sequence[str]) -> Score:
    """Score labels. A workload that was told but never true, or true but never told, has precision or recall 0.

    Raises ValueError without a label."""
    if not len(truth):
        raise ValueError("no run to score")
    truth_, told_ = np.asarray(truth), np.asarray(told)
    classes = sorted({*truth, *told})
    rows = []
    for workload in classes:
        n_hit = int(((truth_ == workload) & (told_ == workload)).sum())
        n_told, n_true = int((told_ == workload).sum()), int((truth_ == workload).sum())
        rows.append((_ratio(n_hit, n_told), _ratio(n_hit, n_true), _ratio(2 * n_hit, n_told + n_true)))
    precision, recall, f1 = np.mean(rows, axis=0)
    return Score(float((truth_ == told_).mean()), float(f1), float(precision), float(recall), len(truth_))


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def summary_of(values: Sequence[float]) -> Summary | None:
    """Mean and deviation of a measure over splits; None without any."""
    if not len(values):
        return None
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Summary(float(np.mean(values)), deviation, len(values))


def confusion_of(truth: Sequence[str], told: Sequence[str]) -> pd.DataFrame:
    """Counts, one row for each pair of workloads that came up: actual, predicted, n."""
    pairs = pd.DataFrame({"actual": list(truth), "predicted": list(told)})
    return pairs.value_counts().rename("n").reset_index().sort_values(["actual", "predicted"], ignore_index=True)


def put(figures: Figures, key: str, value: float | int | None, reason: str = "") -> None:
    """A figure; None, or a value that is not finite, with its reason as `<key>.reason`."""
    is_known = value is not None and bool(np.isfinite(value))
    figures[key] = value if is_known else None
    if not is_known:
        figures[f"{key}.reason"] = reason or "not a number"


def put_summary(figures: Figures, key: str, summary: Summary | None, reason: str = "") -> None:
    """A mean over splits, and `<key>.deviation` where there is more than one."""
    put(figures, key, summary.mean if summary else None, reason)
    if summary and summary.deviation is not None:
        figures[f"{key}.deviation"] = summary.deviation


def auroc(known: FloatArray, unknown: FloatArray) -> float:
    """Probability that an unknown run has a higher score than a known one, ties counting half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([known, unknown]))
    n_unknown = len(unknown)
    return float((ranks[len(known) :].sum() - n_unknown * (n_unknown + 1) / 2) / (len(known) * n_unknown))


def false_known(known: FloatArray, unknown: FloatArray, recall: float) -> float:
    """Share of unknown runs at or below the lowest score that at least `recall` of the known ones are at or below."""
    place = math.ceil(recall * len(known) - ROUNDING) - 1
    return float((unknown <= np.sort(known)[place]).mean())
