"""How sure probabilities should be: one temperature, fitted on rows that the classifier did not learn from."""

import numpy as np
from numpy.typing import ArrayLike

from tasks.jobs.pmf import Floats

LEAST_PROBABILITY = 1e-6  # what a shape counts as that was called impossible, in log losses
LOG_TEMPERATURES = (-2.0, 2.0)  # 0.14 to 7.4


def tempered(probabilities: ArrayLike, temperature: float) -> Floats:
    """p ** (1 / temperature), rows scaled to sum 1; 0 stays 0. probabilities: (n, k)."""
    p = np.asarray(probabilities, dtype=float)
    powers = (p / p.max(axis=1, keepdims=True)) ** (1 / temperature)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def log_loss(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean of -log of the probability of the right shape, at least LEAST_PROBABILITY; nan without rows."""
    p, right = np.asarray(probabilities, dtype=float), np.asarray(labels, dtype=np.intp)
    if not len(right):
        return float("nan")
    return float(-np.log(np.maximum(p[np.arange(len(right)), right], LEAST_PROBABILITY)).mean())


def fit_temperature(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """The temperature with the least log loss; 1 without rows. Source: Guo et al. 2017, On Calibration."""
    from scipy.optimize import minimize_scalar

    p, right = np.asarray(probabilities, dtype=float), np.asarray(labels, dtype=np.intp)
    if not len(right):
        return 1.0
    found = minimize_scalar(
        lambda log_t: log_loss(tempered(p, float(np.exp(log_t))), right), bounds=LOG_TEMPERATURES, method="bounded"
    )
    return float(np.exp(found.x))
