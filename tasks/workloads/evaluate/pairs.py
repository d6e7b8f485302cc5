"""The paper's classifier read as a binary one (RQ1): do two runs have the same workload, or different ones?

A pair is described by how far its two runs lie apart in each feature. Pairs to learn from are of training runs, pairs
to test of tested runs; as many of the same workload as of different ones."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.workloads.evaluate.figures import Figures, put_summary
from tasks.workloads.evaluate.known import Trial
from tasks.workloads.evaluate.scores import summary_of
from tasks.workloads.identify.trees import fit_trees
from tasks.workloads.telemetry import FloatArray

SAME, DIFFERENT = "same", "different"
Pairs = NDArray[np.int64]


def draw_pairs(labels: Sequence[str], n_most: int, rng: np.random.Generator) -> Pairs:
    """Pairs of positions, (n, 2): of the same workload and of different ones, as many of each, at most n_most in all.

    Empty where no workload has two runs, or there is only one workload."""
    told = np.asarray(labels)
    first, second = np.triu_indices(len(told), k=1)
    is_same = told[first] == told[second]
    n_each = min(int(is_same.sum()), int((~is_same).sum()), n_most // 2)
    chosen = [rng.permutation(np.flatnonzero(kind))[:n_each] for kind in (is_same, ~is_same)]
    kept = np.sort(np.concatenate(chosen))
    return np.stack([first[kept], second[kept]], axis=1)


def differences(features: FloatArray, pairs: Pairs) -> FloatArray:
    """|a − b| of the features of each pair: (n_pairs, n_features)."""
    return np.asarray(np.abs(features[pairs[:, 0]] - features[pairs[:, 1]]))


def truth_of(labels: Sequence[str], pairs: Pairs) -> list[str]:
    """Whether each pair is of one workload."""
    told = np.asarray(labels)
    return [SAME if same else DIFFERENT for same in told[pairs[:, 0]] == told[pairs[:, 1]]]


def pair_scores(trial: Trial, n_most: int) -> dict[str, float] | None:
    """Learn from pairs of the training runs and judge pairs of the tested ones: accuracy, and precision, recall and
    F1 of `same`. None where one side has no pair of each kind."""
    learned, params = trial.learned, trial.learned.params
    rng = np.random.default_rng([params.seed, len(trial.runs)])
    known = [str(run.workload) for run in learned.runs]
    train, test = draw_pairs(known, n_most, rng), draw_pairs(trial.truth, n_most, rng)
    if not len(train) or not len(test):
        return None
    trees = fit_trees(differences(learned.features, train), truth_of(known, train), params.trees, params.seed)
    probabilities = trees.probabilities(differences(trial.seen.features, test))
    return binary_scores(truth_of(trial.truth, test), [trees.classes[at] for at in probabilities.argmax(axis=1)])


def binary_scores(truth: Sequence[str], told: Sequence[str]) -> dict[str, float]:
    """accuracy, and precision, recall and F1 of `same`."""
    rows = pd.DataFrame({"truth": list(truth), "told": list(told)})
    n_hit = int(((rows["truth"] == SAME) & (rows["told"] == SAME)).sum())
    n_told, n_true = int((rows["told"] == SAME).sum()), int((rows["truth"] == SAME).sum())
    return {
        "accuracy": float((rows["truth"] == rows["told"]).mean()),
        "precision": n_hit / n_told if n_told else 0.0,
        "recall": n_hit / n_true if n_true else 0.0,
        "f1": 2 * n_hit / (n_told + n_true) if n_told + n_true else 0.0,
    }


def pair_figures(trials: Sequence[Trial], n_most: int, reason: str = "") -> Figures:
    """`pairs.<measure>`: means over the splits."""
    figures: Figures = {}
    found = [scores for trial in trials if (scores := pair_scores(trial, n_most)) is not None]
    told = reason or "no two runs of one workload, and of two, on both sides of a split"
    for measure in ("accuracy", "precision", "recall", "f1"):
        put_summary(figures, f"pairs.{measure}", summary_of([scores[measure] for scores in found]), told)
    return figures
