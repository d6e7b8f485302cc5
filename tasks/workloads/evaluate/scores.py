"""How well labels were told: accuracy, and precision, recall and F1 averaged over workloads; and what is unknown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.workloads.telemetry import FloatArray

ROUNDING = 1e-9  # of a number of runs
MEASURES = ("accuracy", "macro_f1", "precision", "recall")


@dataclass(frozen=True)
class SplitScore:
    """One split. macro_f1, precision, recall: unweighted means over the workloads that were told or true."""

    accuracy: float
    macro_f1: float
    precision: float
    recall: float
    n: int


def score_of(truth: Sequence[str], predicted: Sequence[str]) -> SplitScore:
    """Score labels. A workload that was told but never true, or true but never told, has precision or recall 0.

    Raises ValueError without a label."""
    if not len(truth):
        raise ValueError("no run to score")
    from sklearn.metrics import precision_recall_fscore_support  # type: ignore[import-untyped, unused-ignore]

    precision, recall, f1, _ = precision_recall_fscore_support(truth, predicted, average="macro", zero_division=0)
    accuracy = float((np.asarray(truth) == np.asarray(predicted)).mean())
    return SplitScore(accuracy, float(f1), float(precision), float(recall), len(truth))


def confusion_of(truth: Sequence[str], predicted: Sequence[str]) -> pd.DataFrame:
    """Counts, one row for each pair of workloads that came up: actual, predicted, n."""
    pairs = pd.DataFrame({"actual": list(truth), "predicted": list(predicted)})
    return pairs.value_counts().rename("n").reset_index().sort_values(["actual", "predicted"], ignore_index=True)


def auroc(known: FloatArray, unknown: FloatArray) -> float:
    """Probability that an unknown run has a higher score than a known one, ties counting half."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(unknown, known, method="asymptotic").statistic / (len(known) * len(unknown)))


def false_known(known: FloatArray, unknown: FloatArray, recall: float) -> float:
    """Share of unknown runs at or below the lowest score that at least `recall` of the known ones are at or below."""
    place = math.ceil(recall * len(known) - ROUNDING) - 1
    return float((unknown <= np.sort(known)[place]).mean())
