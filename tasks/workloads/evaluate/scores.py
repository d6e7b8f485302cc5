"""How well labels were told: accuracy, and precision, recall and F1 averaged over workloads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

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
