"""Has a job one shape or two: the Bayes factor of different shapes before and after against the same one."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from tasks.jobs.distribution import Floats
from tasks.jobs.posterior import log_likelihood
from tasks.jobs.shapes import ShapeSet

BLOCK = 1000


def log_bayes_factors(
    before: ArrayLike, after: ArrayLike, shapes: ShapeSet, *, empty_bin_prior: float, prior: ArrayLike | None = None
) -> Floats:
    """log P(runs | different shapes) / P(runs | one shape), natural log: (n_groups,); above 0 speaks for a change.

    before, after: (n_groups, n_bins) runs in each bin; prior: (K,) weights of the shapes, default all alike.
    With L_k and M_k the likelihoods of shape k before and after, and p its prior, one shape has
    sum_k p_k L_k M_k, two have sum_{j != k} p_j p_k L_j M_k / (1 - sum_k p_k²). A group without runs on one side has
    0 with equal priors: no evidence. A single shape leaves nothing to change to: -inf."""
    k = len(shapes.n_groups)
    weights = np.ones(k) if prior is None else np.asarray(prior, dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_p = np.log(weights / weights.sum())
    first = log_likelihood(before, shapes.centres, empty_bin_prior=empty_bin_prior)
    second = log_likelihood(after, shapes.centres, empty_bin_prior=empty_bin_prior)
    if k == 1:
        return np.full(len(first), -np.inf)
    one_shape = logsumexp(first + second + log_p, axis=1)
    off_diagonal = np.where(np.eye(k, dtype=bool), -np.inf, log_p[:, None] + log_p[None, :])  # (k, k)
    log_share = logsumexp(off_diagonal)
    two_shapes = [
        logsumexp(first[i : i + BLOCK, :, None] + second[i : i + BLOCK, None, :] + off_diagonal, axis=(1, 2))
        for i in range(0, len(first), BLOCK)
    ]
    return np.asarray(np.concatenate([*two_shapes, np.zeros(0)]) - log_share - one_shape)
