"""How likely each shape is for a group of runs: the posterior of equations 1 to 9, in log space."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from tasks.errors import BadInput, BadSetting

Floats = NDArray[np.float64]


def log_shapes(shapes: ArrayLike, *, empty_bin_prior: float) -> Floats:
    """log theta, with no bin impossible: (1 - a) theta + a / H, for a = empty_bin_prior and H bins.

    shapes: (K, H), rows are scaled to sum 1. Returns (K, H). Raises BadSetting for an `a` outside [0, 1), or of 0
    where a bin of a shape is empty: one run there would exclude the shape for good. Not in the paper."""
    theta = np.atleast_2d(np.asarray(shapes, dtype=float))
    if not 0 <= empty_bin_prior < 1:
        raise BadSetting(f"empty_bin_prior {empty_bin_prior:g}: expected a probability from 0 to below 1")
    if not np.isfinite(theta).all() or (theta < 0).any() or (theta.sum(axis=1) <= 0).any():
        raise BadInput("shapes", "a row that is no distribution", "finite shares of 0 or more, not all 0")
    theta = theta / theta.sum(axis=1, keepdims=True)
    theta = (1 - empty_bin_prior) * theta + empty_bin_prior / theta.shape[1]
    if (theta <= 0).any():
        raise BadSetting("empty_bin_prior 0: a shape has an empty bin; set it above 0, such as 0.001")
    return np.asarray(np.log(theta))


def log_likelihood(counts: ArrayLike, shapes: ArrayLike, *, empty_bin_prior: float) -> Floats:
    """sum_h n_h log theta_h, the sum of equation 8, as one matrix product: (n_groups, K).

    counts: (n_groups, H) runs of each group in each bin; shapes: (K, H). These are the values of Figure 6."""
    log_theta = log_shapes(shapes, empty_bin_prior=empty_bin_prior)
    n_h = np.atleast_2d(np.asarray(counts, dtype=float))
    if n_h.shape[1] != log_theta.shape[1]:
        raise BadInput("counts", f"{n_h.shape[1]} bins", f"the {log_theta.shape[1]} of the shapes")
    return np.asarray(n_h @ log_theta.T)  # (n_groups, H) @ (H, K)


def log_posterior(
    counts: ArrayLike, shapes: ArrayLike, *, empty_bin_prior: float, prior: ArrayLike | None = None
) -> Floats:
    """log p(z | x_1 … x_N) = sum_h n_h log theta_h + log p(z) - constant, so that exp of a row sums to 1.

    counts: (n_groups, H); shapes: (K, H); prior: (K,) weights of the shapes, default all alike. Returns (n_groups, K);
    a group without runs has the prior. Source: Zhu et al. 2023, equations 4, 7 and 8."""
    return posterior_of(log_likelihood(counts, shapes, empty_bin_prior=empty_bin_prior), prior)


def posterior_of(log_likelihoods: ArrayLike, prior: ArrayLike | None = None) -> Floats:
    """log p(z | x_1 … x_N) from the log likelihoods of the shapes: both (n_groups, K). prior: as in log_posterior."""
    values = np.atleast_2d(np.asarray(log_likelihoods, dtype=float))
    log_joint = values + _log_prior(prior, values.shape[1])
    return np.asarray(log_joint - logsumexp(log_joint, axis=1, keepdims=True))


def flat_log_posterior(counts: ArrayLike, shapes: ArrayLike, *, empty_bin_prior: float) -> Floats:
    """The same with shares phi_h for counts n_h, as in equation 9: the right label, too flat a posterior.

    phi_h = n_h / N divides the sum by N, so that however many runs a group has they count as one. There is no prior:
    beside one run's worth of evidence it could change the label. Kept for comparison; use log_posterior."""
    n_h = np.atleast_2d(np.asarray(counts, dtype=float))
    phi = n_h / np.maximum(n_h.sum(axis=1, keepdims=True), 1)
    return log_posterior(phi, shapes, empty_bin_prior=empty_bin_prior)


def hard_labels(log_posteriors: ArrayLike) -> NDArray[np.intp]:
    """The most probable shape of each group, of equal ones the first: (n_groups,). Source: section 5.2."""
    return np.asarray(np.argmax(np.atleast_2d(np.asarray(log_posteriors)), axis=1))


def prior_weights(prior: Literal["uniform", "size"], n_groups: ArrayLike) -> Floats:
    """Prior probability of each shape: all alike, or by the number of groups that formed it. n_groups: (K,)."""
    sizes = np.asarray(n_groups, dtype=float)
    weights = np.ones(len(sizes)) if prior == "uniform" else sizes
    return np.asarray(weights / weights.sum())


def _log_prior(prior: ArrayLike | None, k: int) -> Floats:
    weights = np.ones(k) if prior is None else np.asarray(prior, dtype=float)
    if weights.shape != (k,) or not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
        raise BadInput("prior", f"weights {weights.tolist()}", f"{k} numbers of 0 or more, not all 0")
    with np.errstate(divide="ignore"):  # weight 0: a shape that is ruled out
        return np.asarray(np.log(weights / weights.sum()))
