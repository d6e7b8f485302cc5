"""A density for past runs: kernels over log runtime, so that the log-score of an empirical distribution exists."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field, PositiveFloat
from scipy.special import gammaln

from tasks.jobs.distribution import Floats
from tasks.jobs.history import History, Ints
from tasks.params import Params

SILVERMAN = 0.9  # Silverman 1986, eq. 3.31: 0.9 min(standard deviation, quartile range / 1.34) n^(-1/5)
NORMAL_QUARTILES = 1.34
PAIRS = 2_000_000  # instances times runs worked on together


class KernelParams(Params):
    """How past runs are smoothed, in log runtime, for the log-score alone."""

    min_width: PositiveFloat = Field(0.02, description="smallest kernel width in log runtime: 0.02 is about 2 %")
    tail_df: PositiveFloat = Field(3.0, description="degrees of freedom of the Student kernel; above 100: normal")
    most: int = Field(200, ge=2, description="most kernels for a group; longer histories stand as that many quantiles")


@dataclass(frozen=True)
class Kernels:
    """centres: (n_kernels,) logs of runtimes, log_weights: the same, width: (n_groups,), starts: (n_groups + 1,).

    Runs of 0 s have no logarithm: they keep their weight in the steps and add no density."""

    centres: Floats
    log_weights: Floats
    width: Floats
    starts: Ints


def fit_kernels(history: History, params: KernelParams) -> Kernels:
    """One kernel for each past run, or for each of params.most quantiles of a longer history.

    The width is Silverman's, with 1 / sum p² for n, p the weights; at least params.min_width, as for one run."""
    sizes = history.sizes
    group = np.repeat(np.arange(history.n_groups), sizes)
    values, weights = history.values_s, history.weights
    is_long = sizes > params.most
    if is_long.any():
        long = np.flatnonzero(is_long)
        levels = np.broadcast_to((np.arange(params.most) + 0.5) / params.most, (len(long), params.most))
        thinned = history.quantile(long[:, None], levels)
        is_kept = ~is_long[group]
        group = np.concatenate([group[is_kept], np.repeat(long, params.most)])
        values = np.concatenate([values[is_kept], thinned.ravel()])
        weights = np.concatenate([weights[is_kept], np.full(thinned.size, 1 / params.most)])
        order = np.argsort(group, kind="stable")
        group, values, weights = group[order], values[order], weights[order]
    with np.errstate(divide="ignore"):
        centres, log_weights = np.log(values), np.log(weights)
    starts = np.searchsorted(group, np.arange(history.n_groups + 1))
    return Kernels(centres, log_weights, _widths(history, params), starts.astype(np.int64))


def _widths(history: History, params: KernelParams) -> Floats:
    """The kernel width of each group, from its runs above 0 s: (n_groups,)."""
    n_groups, group = history.n_groups, np.repeat(np.arange(history.n_groups), history.sizes)
    weights = np.where(history.values_s > 0, history.weights, 0.0)
    logs = np.log(np.where(history.values_s > 0, history.values_s, 1.0))
    total = np.maximum(np.bincount(group, weights, n_groups), np.finfo(float).tiny)
    mean = np.bincount(group, weights * logs, n_groups) / total
    variance = np.bincount(group, weights * (logs - mean[group]) ** 2, n_groups) / total
    each = np.arange(n_groups)
    quartiles = [history.quantile(each, np.full(n_groups, level)) for level in (0.25, 0.75)]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.log(quartiles[1] / quartiles[0]) / NORMAL_QUARTILES
    deviation = np.sqrt(variance)
    scale = np.where(np.isfinite(spread) & (spread > 0), np.minimum(spread, deviation), deviation)
    n_effective = 1 / np.bincount(group, history.weights**2, n_groups)
    return np.maximum(SILVERMAN * scale * n_effective**-0.2, params.min_width)


def kernel_log_density(kernels: Kernels, params: KernelParams, groups: Any, x: Floats) -> Floats:
    """Log of sum_k p_k t((log x - c_k) / width) / width, t the Student density; -inf at 0 s. groups go with x."""
    groups, x = np.broadcast_arrays(groups, x)
    group, times = groups.ravel(), x.ravel()
    sizes = np.diff(kernels.starts)[group]
    found = np.full(times.size, -np.inf)
    if not times.size:
        return found.reshape(x.shape)
    ends = np.cumsum(sizes)
    cuts = np.unique(np.searchsorted(ends, np.arange(PAIRS, max(ends[-1], 1) + PAIRS, PAIRS), side="left") + 1)
    first = 0
    for cut in np.minimum(cuts, times.size):
        if cut > first:
            found[first:cut] = _block(kernels, params, group[first:cut], times[first:cut])
        first = max(first, int(cut))
    return found.reshape(x.shape)


def _block(kernels: Kernels, params: KernelParams, group: Ints, times: Floats) -> Floats:
    sizes = np.diff(kernels.starts)[group]
    row = np.repeat(np.arange(len(group)), sizes)
    into = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    where = kernels.starts[group][row] + into  # (n_pairs,)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (np.log(times)[row] - kernels.centres[where]) / kernels.width[group][row]
        each = kernels.log_weights[where] + _log_kernel(z, params.tail_df)
    each = np.where(np.isfinite(each), each, -np.inf)
    starts = np.cumsum(sizes) - sizes
    largest = np.maximum.reduceat(each, starts)  # every group has a kernel
    base = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(
            base + np.log(np.add.reduceat(np.exp(each - base[row]), starts)) - np.log(kernels.width[group])
        )


def _log_kernel(z: Floats, df: float) -> Floats:
    is_normal = 100
    if df > is_normal:
        return np.asarray(-0.5 * z * z - 0.5 * np.log(2 * np.pi))
    log_scale = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi)
    return np.asarray(log_scale - (df + 1) / 2 * np.log1p(z * z / df))
