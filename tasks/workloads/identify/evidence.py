"""What speaks for a run being unknown: doubts of the trees, distance to known runs, and the paper's thresholds.

Every column rises with the suspicion. Kin fool the trees, which must name somebody: a run of an unknown kin is like
the known one in most counters and far from it in those that are always the same, which is what `apart` measures."""

from collections.abc import Mapping, Sequence

import numpy as np

from tasks.workloads.similarity.thresholds import Spread
from tasks.workloads.telemetry import FloatArray

EVIDENCE = ("doubt", "entropy", "apart", "far", "ratio", "disagreement", "threshold")
LEAST = 1e-3  # of a probability, a distance or a ratio, before its logarithm
MOST = 5.0  # of a logarithm of a ratio


def evidence_of(probabilities: FloatArray, means: FloatArray, usual: FloatArray, beyond: FloatArray) -> FloatArray:
    """One row of EVIDENCE a run: (n, n_evidence).

    probabilities: (n, n_classes) of the trees. means: (n, n_classes), mean distance to the nearest runs of each
    workload. usual: (n_classes,), that distance between a workload's own runs. beyond: (n,), fingerprint distance over
    the threshold of the workload that it suits best (V-D)."""
    surest = probabilities.max(axis=1)
    relative = means / usual
    first = relative.min(axis=1)
    n_classes = relative.shape[1]
    second = np.sort(relative, axis=1)[:, 1] if n_classes > 1 else np.full(len(relative), np.inf)
    named = relative[np.arange(len(relative)), probabilities.argmax(axis=1)]
    columns = {
        "doubt": np.log((1 - surest + LEAST) / (surest + LEAST)),
        "entropy": _entropy(probabilities),
        "apart": _log(first),
        "far": _log(means.min(axis=1)),
        "ratio": _log(first / np.maximum(second, LEAST)),
        "disagreement": _log(named / np.maximum(first, LEAST)),
        "threshold": _log(beyond),
    }
    return np.column_stack([columns[name] for name in EVIDENCE])


def beyond_threshold(
    found: FloatArray, labels: Sequence[str], spreads: Mapping[str, Spread], deviations: float
) -> FloatArray:
    """Distance to the nearest run of each workload over mean + deviations, the least of all workloads: (n,).

    found: (n, n_known) between fingerprints. A workload that was seen once has the mean spread of the others."""
    known = np.asarray(labels)
    reaches = {name: one.mean + deviations * one.deviation for name, one in spreads.items()}
    usual = float(np.mean(list(reaches.values()))) if reaches else 1.0
    columns = [
        found[:, known == name].min(axis=1) / max(reaches.get(name, usual), LEAST) for name in sorted(set(labels))
    ]
    return np.asarray(np.min(columns, axis=0))


def _entropy(probabilities: FloatArray) -> FloatArray:
    """0: one workload is certain; 1: all are as likely."""
    n_classes = probabilities.shape[1]
    if n_classes < 2:
        return np.zeros(len(probabilities))
    safe = np.maximum(probabilities, 1e-12)
    return np.asarray(-np.sum(safe * np.log(safe), axis=1) / np.log(n_classes))


def _log(ratio: FloatArray) -> FloatArray:
    return np.clip(np.log(np.maximum(ratio, LEAST)), -MOST, MOST)
