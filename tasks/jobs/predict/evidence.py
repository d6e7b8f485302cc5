"""The classifier's word and that of the job's own runs, multiplied: p ∝ trees^a · all earlier runs^b · last runs^c.

Trees learn from as many labels as there are jobs, which is few; the posterior of a job's own earlier runs needs no
learning but takes every run for independent, and the job for unchanging. Three powers weigh them, fitted on
probabilities of trees that did not see the job."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.pmf import Floats

LEAST = 1e-4  # what a shape counts as that the evidence excludes
RIDGE = 1e-3
N_FOLDS = 5
PREFIXES = ("shape", "recent_shape")


def evidence_columns(frame: pd.DataFrame, kind: str, k: int) -> tuple[tuple[str, ...], ...]:
    """The columns of each kind of evidence that the features have: all earlier runs, and the last ones."""
    named = [tuple(f"{prefix}_{kind}_{shape}" for shape in range(k)) for prefix in PREFIXES]
    return tuple(names for names in named if set(names) <= set(frame))


def evidence_of(frame: pd.DataFrame, evidence: Sequence[Sequence[str]]) -> list[Floats]:
    """Probabilities of the shapes by each kind of evidence, (n, k) each; all alike for a job without earlier runs."""
    return [frame[list(names)].fillna(1 / len(names)).to_numpy(dtype=float) for names in evidence]


def multiplied(factors: Sequence[Floats], powers: Floats) -> Floats:
    """The product of the factors, (n, k) each, to their powers, scaled to rows of sum 1."""
    logs = np.tensordot(powers, np.log(np.maximum(np.stack(factors), LEAST)), axes=1)
    logs = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(logs / logs.sum(axis=1, keepdims=True))


def fit_powers(factors: Sequence[Floats], likely: Floats, weights: Floats) -> Floats:
    """The powers of 0 or more that make the labels most likely: (n_factors,).

    likely: (n, k) probability of each label; weights: (n,). A small ridge keeps them near 0 where all are alike."""
    from scipy.optimize import minimize

    def loss(powers: Floats) -> float:
        logs = np.log(np.maximum(multiplied(factors, powers), LEAST))
        return float(-(weights[:, None] * likely * logs).sum() / weights.sum() + RIDGE * (powers**2).sum())

    start = np.full(len(factors), 1 / len(factors))
    return np.asarray(minimize(loss, start, bounds=[(0.0, 3.0)] * len(factors), method="L-BFGS-B").x)


def group_folds(groups: NDArray[np.object_], seed: int) -> NDArray[np.int64]:
    """A number from 0 to N_FOLDS - 1 for each row, the same for all rows of a job: (n,)."""
    codes, keys = pd.factorize(groups)
    fold_of = np.random.default_rng(seed).permutation(len(keys)) % N_FOLDS
    return np.asarray(fold_of[codes], dtype=np.int64)
