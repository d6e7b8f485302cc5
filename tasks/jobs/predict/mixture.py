"""Several predictions of the same runtimes made one: their best mixture, recalibrated, and the time limit that ends it.

A prediction is here a row of quantiles at LEVELS, in logs of seconds. Mixed are distributions (a linear pool, Stone
1961), with the weights that have the least CRPS on runs that none of them had learnt from; the CRPS of a mixture is a
quadratic function of the weights, so these are found exactly. A mixture is wider than its parts where these disagree;
means of quantiles are not (Lichtendahl, Grushka-Cockayne & Winkler 2013), and can stand in at both ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.distribution import Floats

N_LEVELS = 100
LEVELS = (np.arange(N_LEVELS) + 0.5) / N_LEVELS
THINNED = slice(2, None, 5)  # levels that the weights are chosen with: 20 of them
CALIBRATION_RUNS = 1_000  # the last so many runs that a model did not learn from say how it is to be recalibrated
UNMOVED_RUNS = 50  # as many runs stand for predictions that are right as they are, but that models are too sure:
BEYOND_SHARE = 0.1  # so many of these lie beyond all quantiles, half of them on each side
RECALIBRATED_TOGETHER = 100  # runs, in order of time
EVEN_RUNS = 25  # as many runs stand for parts that count the same, and for a class that is like all others
LEAST_UNIT = 1e-3  # of the worst part's error: the best may know a constant runtime exactly
SUPPORT = (1, 5, 20)  # runs that a job has had, from which on other weights count
N_CLASSES = len(SUPPORT) + 1
BLOCK = 1_000  # submissions worked on together: their quantiles, 3 MB, stay in the cache of a core
ROUNDING = 1e-12  # of sums of weights
FIRST_END, FULL_END = 0.25, 0.45  # how far from the median quantiles of a mixture begin to give way, and do so fully
PART_BITS = 15  # the last bits of a value in a mixture: the number of its part
SAME = 1e-9  # logs of seconds that differ by less are of the same runtime
LOG_RANGE = (-12.0, 25.0)  # of seconds: from 6 microseconds to 2,000 years
LEAST_LIMITED_RUNS = 50
ENFORCED_SHARE = 0.99  # of the runs with a limit that ended within the grace, for it to count as enforced
MOST_GRACE = 1.25
GRACE_QUANTILE = 0.999


def order_quantiles(latest: Floats) -> Floats:
    """Quantiles of the next one of exchangeable values at LEVELS by the (n + 1) rule: (n, m) to (n, n_levels).

    NaN values are left out; a row without any is NaN. Level q lies at place q (n + 1) of the ordered values,
    interpolated, the ends held. Source: the rank of a new value among n others is uniform on 1 … n + 1."""
    last = np.isfinite(latest).sum(axis=1)[:, None] - 1

    def of_block(block: slice) -> Floats:
        values, end = np.sort(latest[block], axis=1), np.maximum(last[block], 0)
        place = np.clip(LEVELS * (last[block] + 2) - 1, 0, end)
        low = place.astype(np.intp)
        first = np.arange(len(values))[:, None] * values.shape[1]  # of each row, among all
        below, above = (values.ravel().take(first + at) for at in (low, np.minimum(low + 1, end)))
        return np.asarray(below + (place - low) * (above - below))  # NaN in a row without any

    return _in_blocks(len(latest), of_block)


def beside_one_run(quantiles: Floats, others: Floats) -> Floats:
    """Quantiles after one earlier run: the next one is as likely shorter as longer, how much so `others` say.

    By the (n + 1) rule one run says no more than that; taken for all that may come, an unusual one would count as
    certain. quantiles: (n, n_levels) of one value a row; others: (n, n_levels), ascending. Both in logs of seconds."""
    return np.where(LEVELS < 0.5, np.minimum(quantiles, others), np.maximum(quantiles, others))


def mixture_by_support(
    parts: Sequence[Floats], weights: Floats, support: NDArray[np.intp], ends: float = 0.0
) -> Floats:
    """Quantiles of the mixtures: parts of (n, n_levels) each, weights (N_CLASSES, n_parts), support (n,) the class.

    ends: the share that means of the parts' quantiles have at both ends, 0 to 1; the middle half has none of them."""
    quantiles = np.empty_like(parts[0])
    for each in np.unique(support):
        is_in = support == each
        quantiles[is_in] = mixture([part[is_in] for part in parts], weights[each])
    if ends == 0:
        return quantiles
    share = ends * np.clip((np.abs(LEVELS - 0.5) - FIRST_END) / (FULL_END - FIRST_END), 0.0, 1.0)
    of_parts = zip(parts, weights.T, strict=True)
    means = np.sum([part * of_classes[support, None] for part, of_classes in of_parts], axis=0)
    return np.sort(quantiles + share * (means - quantiles), axis=1)


def mixture(parts: Sequence[Floats], weights: Floats) -> Floats:
    """Quantiles of the mixture of distributions: parts of (n, n_levels) each, weights (n_parts,) that sum to 1.

    At most 16 parts have weight; values keep 48 of their 52 bits, so they are right to 1 in 10^14."""
    used = [(part, weight) for part, weight in zip(parts, weights, strict=True) if weight > 0]
    if len(used) == 1:
        return used[0][0]
    number = np.repeat(np.arange(len(used)), N_LEVELS)
    masses = np.array([weight for _, weight in used]) / N_LEVELS

    def of_block(block: slice) -> Floats:
        values = np.concatenate([part[block] for part, _ in used], axis=1)
        bits = values.view(np.int64)  # their last ones say of which part a value is, so that values alone are sorted
        bits &= ~PART_BITS
        bits |= number
        values.sort(axis=1)
        upto = np.cumsum(masses[bits & PART_BITS], axis=1)
        levels_upto = (upto * N_LEVELS + (0.5 + ROUNDING * N_LEVELS)).astype(np.int32)  # levels that are reached there
        np.minimum(levels_upto, N_LEVELS, out=levels_upto)
        levels_upto[:, -1] = N_LEVELS  # whatever rounding says
        n_levels_at = np.diff(levels_upto, axis=1, prepend=0)
        return np.repeat(values.ravel(), n_levels_at.ravel()).reshape(-1, N_LEVELS)

    return _in_blocks(len(parts[0]), of_block)


def _in_blocks(n: int, answer: Callable[[slice], Floats]) -> Floats:
    """answer(rows), (n_rows, n_levels), of n rows, BLOCK of them at a time: (n, n_levels)."""
    quantiles = np.empty((n, N_LEVELS))
    for first in range(0, n, BLOCK):
        quantiles[first : first + BLOCK] = answer(slice(first, first + BLOCK))
    return quantiles


def best_weights_by_support(parts: Sequence[Floats], runtime_s: Floats, support: NDArray[np.intp]) -> Floats:
    """The best weights of the runs of each class of support, drawn towards those of all: (N_CLASSES, n_parts).

    Those of all are drawn towards even ones, or to the last part alone where that has no greater CRPS: where jobs are
    alike, all runs say more than a few. parts: (n, n_levels) each, runtime_s: (n,), support: (n,) the class of each
    run, by SUPPORT."""
    n_parts = len(parts)
    of_all = best_weights(parts, runtime_s, towards=(np.eye(n_parts)[-1], np.full(n_parts, 1 / n_parts)))
    weights = np.tile(of_all, (N_CLASSES, 1))
    for each in np.unique(support):
        is_in = support == each
        weights[each] = best_weights([part[is_in] for part in parts], runtime_s[is_in], towards=(of_all,))
    return weights


def best_weights(parts: Sequence[Floats], runtime_s: Floats, *, towards: Sequence[Floats]) -> Floats:
    """Weights of the mixture with the least mean CRPS in seconds on these runs: (n_parts,), they sum to 1.

    The CRPS of sum_i w_i F_i is sum_i w_i E|X_i - y| - 1/2 sum_ij w_i w_j E|X_i - X_j| (Gneiting & Raftery 2007,
    eq. 21). Few runs leave the weights near the best of `towards`, (n_parts,) each: each adds EVEN_RUNS / n of its
    squared distance, in units of the best part's error. parts: (n, n_levels) each, runtime_s: (n,)."""
    from scipy.optimize import minimize  # not above: a third of a second that answers need not pay

    n_parts = len(parts)
    atoms = [np.exp(np.clip(part[:, THINNED], *LOG_RANGE)) for part in parts]
    error = np.array([np.abs(values - runtime_s[:, None]).mean() for values in atoms])
    between = np.zeros((n_parts, n_parts))
    for i in range(n_parts):
        for j in range(i, n_parts):
            between[i, j] = between[j, i] = _mean_distance(atoms[i], atoms[j])
    unit = max(float(error.min()), LEAST_UNIT * float(error.max()), np.finfo(float).tiny)
    ridge = EVEN_RUNS / len(runtime_s)

    def crps(w: Floats) -> float:
        return float(w @ error - w @ between @ w / 2) / unit

    start = min(towards, key=crps)
    optimum = minimize(
        lambda w: crps(w) + ridge * np.sum((w - start) ** 2),
        start,
        jac=lambda w: (error - between @ w) / unit + 2 * ridge * (w - start),
        bounds=[(0.0, 1.0)] * n_parts,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda _: np.ones(n_parts)},
        method="SLSQP",
    )
    weights = np.where(optimum.x > 1e-3, optimum.x, 0.0)
    return np.asarray(weights / weights.sum())


def _mean_distance(first: Floats, second: Floats) -> float:
    """Mean over rows of E|X - Y|, X and Y drawn from the values of the row, which ascend."""
    total = sum(float(np.abs(first - second[:, [place]]).mean()) for place in range(second.shape[1]))
    return float(total / second.shape[1])


def median_of(quantiles: Floats) -> Floats:
    """The median of each row: (n, n_levels) to (n,)."""
    middle = N_LEVELS // 2
    return np.asarray(quantiles[:, middle - 1 : middle + 1].mean(axis=1))


@dataclass(frozen=True)
class Recalibration:
    """What makes predictions right on average over runs: quantiles are read at other levels, and those at the ends
    moved. levels, moved: (n_levels,), moved in logs of seconds."""

    levels: Floats = field(default_factory=LEVELS.copy)
    moved: Floats = field(default_factory=lambda: np.zeros(N_LEVELS))

    def applied(self, quantiles: Floats) -> Floats:
        """The same predictions recalibrated, interpolated between quantiles: (n, n_levels)."""
        place = np.clip(self.levels * N_LEVELS - 0.5, 0, N_LEVELS - 1)
        low = np.floor(place).astype(int)
        below, above = quantiles[:, low], quantiles[:, np.minimum(low + 1, N_LEVELS - 1)]
        return np.asarray(below + (place - low) * (above - below) + self.moved)


def recalibration(quantiles: Floats, log_s: Floats) -> Recalibration:
    """The recalibration after which shares LEVELS of these runs lie below the quantiles.

    quantiles: (n, n_levels) of runs that the model had not learnt from, in order of time, log_s: (n,) what they took;
    the last CALIBRATION_RUNS count. Source: the distribution of the probability integral transform (Kuleshov et al.
    2018, section 3.2), spread evenly where several quantiles are the runtime (Czado et al. 2009, eq. 2), and mixed with
    that of UNMOVED_RUNS. Where runs lie beyond all quantiles, those at the end move out to them."""
    if not len(log_s):
        return Recalibration()
    quantiles, log_s = quantiles[-CALIBRATION_RUNS:], log_s[-CALIBRATION_RUNS:]
    below, upto = ((quantiles < log_s[:, None] + apart).sum(axis=1) for apart in (-SAME, SAME))
    centre, reach = (below + upto) / 2, np.maximum(upto - below, 1) / 2
    edges = np.arange(N_LEVELS + 1)
    share = np.clip((edges - (centre - reach)[:, None]) / (2 * reach)[:, None], 0.0, 1.0)
    share[:, -1] = 1.0
    n = len(log_s) + UNMOVED_RUNS
    unmoved = BEYOND_SHARE / 2 + (1 - BEYOND_SHARE) * edges / N_LEVELS
    reached = (share.sum(axis=0) + UNMOVED_RUNS * unmoved) / n
    levels, moved = np.interp(LEVELS, reached, edges / N_LEVELS), np.zeros(N_LEVELS)
    for end, sign, over, upwards in (
        (1, 1, log_s - quantiles[:, -1], LEVELS),
        (0, -1, quantiles[:, 0] - log_s, 1 - LEVELS),
    ):
        over = over[over > SAME]
        place = 1 - (1 - upwards) * n / max(len(over), 1)  # of a level among the runs that lie beyond
        if len(over):
            levels[place > 0] = end
            moved[place > 0] = sign * np.quantile(over, place[place > 0])
    return Recalibration(levels, moved)


def recalibrated_in_time(
    quantiles: Floats, log_s: Floats, submitted_at: NDArray[np.datetime64], ended_at: NDArray[np.datetime64], n_old: int
) -> Floats:
    """Quantiles of the runs from place n_old on, each block recalibrated by the runs that had ended before it.

    All arrays are of the same n runs in order of submission, none of which the model had learnt from; the first n_old
    only recalibrate. Returns (n - n_old, n_levels)."""
    made = []
    for first in range(n_old, len(log_s), RECALIBRATED_TOGETHER):
        block = slice(first, min(first + RECALIBRATED_TOGETHER, len(log_s)))
        known = np.flatnonzero(ended_at[: block.stop] < submitted_at[first])
        known = known[np.argsort(ended_at[known], kind="stable")][-CALIBRATION_RUNS:]
        made.append(recalibration(quantiles[known], log_s[known]).applied(quantiles[block]))
    return np.concatenate(made) if made else quantiles[n_old:]


def learn_grace(runtime_s: Floats, limits_s: Floats) -> float | None:
    """What runs take at most over their time limit, as a factor of at least 1; None where limits are not enforced.

    runtime_s, limits_s: (n,), missing or 0 without a limit."""
    is_limited = np.isfinite(limits_s) & (limits_s > 0)
    if is_limited.sum() < LEAST_LIMITED_RUNS:
        return None
    over = runtime_s[is_limited] / limits_s[is_limited]
    grace = max(1.0, float(np.quantile(over, GRACE_QUANTILE)))
    if grace <= MOST_GRACE:
        return grace
    return MOST_GRACE if float((over <= MOST_GRACE).mean()) >= ENFORCED_SHARE else None


def limited(quantiles: Floats, features: pd.DataFrame, grace: float | None) -> Floats:
    """No quantile beyond the time limit of the run and the grace: (n, n_levels)."""
    if grace is None or "requested_runtime_s" not in features:
        return quantiles
    limits_s = features["requested_runtime_s"].to_numpy(dtype=float)
    is_limited = np.isfinite(limits_s) & (limits_s > 0)
    most = np.where(is_limited, np.log(np.where(is_limited, limits_s, 1.0) * grace), np.inf)
    return np.minimum(quantiles, most[:, None])
