"""Bayesian online change points: the Student-t predictive, the posterior of run lengths, and what is read from it.

The filter keeps run lengths while samples arrive, of one series or shared by all counters; changes and their
probabilities are read from it afterwards (Adams and MacKay 2007; Hossain et al. 2022, equations 1 to 4)."""

from __future__ import annotations

from functools import lru_cache
from math import lgamma

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic import Field

from tasks.params import Params

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tables = tuple[Floats, Floats, Floats, Floats, float]  # `predictive_tables`
N_CACHED = 128  # tables kept: those that one series is tried with


class PriorParams(Params):
    """What is believed of a segment before its first sample: a normal-inverse-gamma prior, values in scaled units.

    mean, kappa: expected level, and the samples that this belief is worth. noise, alpha: expected variance of the
    noise, 1 being the whole series (beta: alpha noise), and half the samples that it is worth (2 alpha: freedom of t).
    trend_share: probability that a segment is a straight line and not a level. trend_span: deviation of a line's rise
    over the whole series, in deviations of noise."""

    mean: float = 0.0
    kappa: float = Field(0.1, gt=0)
    alpha: float = Field(3.0, gt=0)
    noise: float = Field(0.3, gt=0)
    trend_share: float = Field(0.5, ge=0, lt=1)
    trend_span: float = Field(30.0, gt=0)


@lru_cache(maxsize=N_CACHED)
def predictive_tables(prior: PriorParams, n_samples: int, correlation: float = 0.0) -> Tables:
    """The tables of a prior for a series of n samples, a row for each m = 0 … n - 1; time runs from 0 to 1 over it.

    half (n,): a = alpha + m/2; level (n, 4): c, 1/(2q), gain, weight; line (n, 6): c, 1/(2q), gains of level and slope,
    weights of level and slope; start: mean, b, log prior odds of a line (minus infinity: levels only); the correlation.
    The prior speaks of the noise's stationary variance, whatever its correlation, 0 to less than 1."""
    half = prior.alpha + np.arange(n_samples) / 2
    student = _student(half)
    times = np.arange(n_samples) / max(n_samples, 1)
    of_level, of_time = np.full(n_samples, 1 - correlation), times.copy()
    of_time[1:] -= correlation * times[:-1]
    stationary = 1 / (1 - correlation**2)  # variance of the noise over that of its innovations
    of_level[:1] = stationary**-0.5
    student[:1] -= 0.5 * np.log(stationary)
    never = np.zeros(n_samples)
    gains, spread = line_gains(of_level, never, stationary / prior.kappa, 0.0)
    level = np.column_stack([student - 0.5 * np.log(spread), 0.5 / spread, gains[:, 0], of_level])
    gains, spread = line_gains(of_level, of_time, stationary / prior.kappa, stationary * prior.trend_span**2)
    line = np.column_stack([student - 0.5 * np.log(spread), 0.5 / spread, gains, of_level, of_time])
    odds = np.log(prior.trend_share) - np.log1p(-prior.trend_share) if prior.trend_share else -np.inf
    start = np.array([prior.mean, prior.alpha * prior.noise / stationary, odds])
    return half, level, line, start, correlation


@njit(cache=True)
def _student(half: Floats) -> Floats:
    """The log normalisation of Student's t with 2a degrees of freedom and unit scale, for each a."""
    logs = np.empty(len(half))
    for m in range(len(half)):
        logs[m] = lgamma(half[m] + 0.5) - lgamma(half[m]) - 0.5 * np.log(2 * np.pi)
    return logs


@njit(cache=True)
def line_gains(weights: Floats, times: Floats, of_level: float, of_slope: float) -> tuple[Floats, Floats]:
    """Gains (n, 2) and q (n,) of recursive least squares for level and slope, from their variances over the noise's."""
    gains, spread = np.empty((len(times), 2)), np.empty(len(times))
    shared = 0.0  # covariance of level and slope
    for m in range(len(times)):
        level = of_level * weights[m] + shared * times[m]
        slope = shared * weights[m] + of_slope * times[m]
        spread[m] = 1 + weights[m] * level + times[m] * slope
        gains[m, 0], gains[m, 1] = level / spread[m], slope / spread[m]
        of_level -= level * gains[m, 0]
        shared -= level * gains[m, 1]
        of_slope -= slope * gains[m, 1]
    return gains, spread


Filtered = tuple[Floats, Ints, Ints, Ints, Floats, int, int]

LEVEL, LEVEL_B, LEVEL_LOG_B, LINE, SLOPE, LINE_B, LINE_LOG_B, ODDS, SOFT_ODDS = range(9)
N_STATE = 9
SLACK = 4  # the cap is enforced when a quarter more than it are alive: sorting then costs little a sample
HALVINGS = 30  # of the range in which the cap's log probability is sought: to 1e-6 nats
FAR_NATS = 1000.0
KEPT_FLOOR = 1e-7  # smallest filtered probability that is stored for smoothing
LONG, LONG_FLOOR = 100_000, 1e-5  # of longer series: a million samples stay below a GiB


@njit(cache=True)
def soft(x: float) -> float:
    """log(1 + exp(x)), without overflow."""
    return float(x + np.log1p(np.exp(-x)) if x > 0 else np.log1p(np.exp(x)))


@njit(cache=True)
def observe(state: Floats, y: float, half: float, level: Floats, line: Floats) -> float:
    """The log predictive of y for one counter of one segment, whose statistics then follow y, in place."""
    residual = y - level[3] * state[LEVEL]
    b = state[LEVEL_B] + level[1] * residual * residual
    log_b = np.log(b)
    log_level = level[0] + half * state[LEVEL_LOG_B] - (half + 0.5) * log_b
    state[LEVEL] += level[2] * residual
    state[LEVEL_B], state[LEVEL_LOG_B] = b, log_b
    if state[ODDS] == -np.inf:
        return float(log_level)
    residual = y - line[4] * state[LINE] - line[5] * state[SLOPE]
    b = state[LINE_B] + line[1] * residual * residual
    log_b = np.log(b)
    log_line = line[0] + half * state[LINE_LOG_B] - (half + 0.5) * log_b
    state[LINE] += line[2] * residual
    state[SLOPE] += line[3] * residual
    state[LINE_B], state[LINE_LOG_B] = b, log_b
    # (1 - w) p_level + w p_line, w the posterior probability of a line: the odds carry the evidence so far
    state[ODDS] += log_line - log_level
    before = state[SOFT_ODDS]
    state[SOFT_ODDS] = soft(state[ODDS])
    return float(log_level + state[SOFT_ODDS] - before)


@njit(cache=True)
def begin(state: Floats, start: Floats) -> None:
    """Set the statistics of a new segment to the prior, in place. state: (d, N_STATE)."""
    for counter in range(len(state)):
        state[counter, LEVEL] = state[counter, LINE] = start[0]
        state[counter, LEVEL_B] = state[counter, LINE_B] = start[1]
        state[counter, LEVEL_LOG_B] = state[counter, LINE_LOG_B] = np.log(start[1])
        state[counter, SLOPE] = 0.0
        state[counter, ODDS] = start[2]
        state[counter, SOFT_ODDS] = soft(start[2])


@njit(cache=True)
def normalise(n: int, logs: Floats, best: Floats, shares: Floats) -> float:
    """Make the probabilities of the segments alive sum to 1, in place; the log of their sum before.

    shares: (room,) the probabilities themselves, filled in."""
    top = -np.inf
    for k in range(n):
        top = max(top, logs[k])
    total = 0.0
    for k in range(n):
        shares[k] = np.exp(logs[k] - top)
        total += shares[k]
    norm = top + np.log(total)
    for k in range(n):
        shares[k] /= total
        logs[k] -= norm
        best[k] -= norm
    return float(norm)


@njit(cache=True)
def split(
    t: int, n: int, starts: Ints, logs: Floats, best: Floats, shares: Floats, hazard: Floats, min_segment: int
) -> int:
    """Let a segment start at t beside the n that go on; the start of the segment before it on the best path, or -1.

    hazard: log of a change, log of none. Segments shorter than min_segment cannot end."""
    if t == 0:
        starts[0], logs[0], best[0] = 0, 0.0, 0.0
        return 0
    total, path, before = 0.0, -np.inf, -1
    for k in range(n):
        if t - starts[k] >= min_segment:
            if best[k] > path:
                path, before = best[k], starts[k]
            total += shares[k]
            logs[k] += hazard[1]
            best[k] += hazard[1]
    if total == 0:
        return -1
    starts[n], logs[n], best[n] = t, np.log(total) + hazard[0], path + hazard[0]
    return before


@njit(cache=True)
def rank_floor(logs: Floats, n: int, low: float, high: float, cap: int) -> float:
    """A log probability that few more or fewer than `cap` of n segments reach, never more than `cap`: by bisection."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        n_above = 0
        for k in range(n):
            n_above += logs[k] >= middle
        if n_above > cap:
            low = middle
        else:
            high = middle
    return high


@njit(cache=True)
def prune(
    n: int, starts: Ints, logs: Floats, best: Floats, shares: Floats, states: Floats, nats: float, cap: int
) -> int:
    """Drop segments that are improbable both in sum and on the best path, and the least probable over the cap."""
    top, path, leader = -np.inf, -np.inf, 0
    for k in range(n):
        top = max(top, logs[k])
        if best[k] > path:
            path, leader = best[k], k
    floor = -np.inf
    if n > cap + cap // SLACK:
        floor = rank_floor(logs, n, top - FAR_NATS, top, cap)
    k = 0
    while k < n:
        if k == leader or (logs[k] >= floor and (logs[k] >= top - nats or best[k] >= path - nats)):
            k += 1
            continue
        n -= 1  # the last one takes the place: the order of segments does not matter
        if leader == n:
            leader = k
        starts[k], logs[k], best[k], shares[k] = starts[n], logs[n], best[n], shares[n]
        for counter in range(states.shape[1]):
            for i in range(N_STATE):
                states[k, counter, i] = states[n, counter, i]
    return n


@njit(cache=True)
def observe_row(
    t: int,
    n: int,
    values: Floats,
    latest: Floats,
    seen: Ints,
    starts: Ints,
    logs: Floats,
    best: Floats,
    states: Floats,
    tables: Tables,
) -> int:
    """Weigh the n segments alive by what they predicted of row t, in place; how many predictives that took.

    latest: (d,) the sample before of each counter. seen: (n_samples + 1, d) the samples of each counter before each
    row; that of the next row is filled in."""
    half, level, line, _, correlation = tables
    of_first = np.sqrt(1 - correlation * correlation)
    n_predictives = 0
    for counter in range(values.shape[1]):
        y = values[t, counter]
        seen[t + 1, counter] = seen[t, counter]
        if np.isnan(y):
            continue
        seen[t + 1, counter] += 1
        for k in range(n):
            m = seen[t, counter] - seen[starts[k], counter]
            innovation = of_first * y if m == 0 else y - correlation * latest[counter]
            gained = observe(states[k, counter], innovation, half[m], level[m], line[m])
            logs[k] += gained
            best[k] += gained
        latest[counter] = y
        n_predictives += n
    return n_predictives


@njit(cache=True)
def store(
    at: int, n: int, starts: Ints, shares: Floats, kept_starts: Ints, kept: Floats, floor: float
) -> tuple[int, Ints, Floats]:
    """Append the filtered posterior of one row to the ragged arrays, which grow as they must."""
    if at + n > len(kept):
        more_starts, more = np.empty(2 * len(kept) + n, np.int64), np.empty(2 * len(kept) + n)
        for i in range(at):
            more_starts[i], more[i] = kept_starts[i], kept[i]
        kept_starts, kept = more_starts, more
    for k in range(n):
        if shares[k] >= floor:
            kept_starts[at], kept[at] = starts[k], shares[k]
            at += 1
    return at, kept_starts, kept


@njit(cache=True)
def last_start(t: int, n: int, starts: Ints, best: Floats, min_segment: int) -> int:
    """The start of the last segment of the best segmentation after t samples, of those that may end there."""
    last, path = 0, -np.inf
    for k in range(n):
        if best[k] > path and (t - starts[k] >= min_segment or starts[k] == 0):
            last, path = starts[k], best[k]
    return last


@njit(cache=True)
def filter_run_lengths(
    values: Floats, tables: Tables, hazard: Floats, min_segment: int, nats: float, cap: int
) -> Filtered:
    """Run the filter over a series. values: (n, d), NaN where a counter was not sampled; no row all NaN.

    hazard: log of a change, log of none. nats, cap: how far below the best, and how many, run lengths are kept.
    Returns the log evidence after each sample (n,); for each sample the start of the segment before one that starts
    there, on the best path, (n,); the filtered posterior, ragged: offsets (n + 1,), starts, probabilities; the start
    of the last segment on the best path; and the number of predictives computed."""
    n_samples, d = values.shape
    room = min(n_samples, cap + cap // SLACK + 1) + 1
    starts, logs, best, shares = np.empty(room, np.int64), np.empty(room), np.empty(room), np.empty(room)
    states = np.empty((room, d, N_STATE))
    seen = np.zeros((n_samples + 1, d), np.int64)
    evidence, before = np.zeros(n_samples), np.full(n_samples, -1, np.int64)
    offsets = np.zeros(n_samples + 1, np.int64)
    kept_starts, kept = np.empty(16 * n_samples + room, np.int64), np.empty(16 * n_samples + room)
    latest = np.zeros(d)
    kept_floor = LONG_FLOOR if n_samples > LONG else KEPT_FLOOR
    n, total, n_predictives = 0, 0.0, 0
    for t in range(n_samples):
        before[t] = split(t, n, starts, logs, best, shares, hazard, min_segment)
        if before[t] >= 0:
            begin(states[n], tables[3])
            n += 1
        n_predictives += observe_row(t, n, values, latest, seen, starts, logs, best, states, tables)
        total += normalise(n, logs, best, shares)
        evidence[t] = total
        n = prune(n, starts, logs, best, shares, states, nats, cap)
        at, kept_starts, kept = store(offsets[t], n, starts, shares, kept_starts, kept, kept_floor)
        offsets[t + 1] = at
    last = last_start(n_samples, n, starts, best, min_segment)
    return evidence, before, offsets, kept_starts[:at], kept[:at], last, n_predictives


NEGLIGIBLE = 1e-10  # a change less probable than this is not spread over what came before it


@njit(cache=True)
def best_changes(before: Ints, last: int) -> Ints:
    """The samples, rising, at which segments of the most probable segmentation start, the first segment left out."""
    n_changes, at = 0, last
    while at > 0:
        n_changes += 1
        at = before[at]
    changes = np.empty(n_changes, np.int64)
    at = last
    for i in range(n_changes - 1, -1, -1):
        changes[i] = at
        at = before[at]
    return changes


@njit(cache=True)
def change_probabilities(offsets: Ints, starts: Ints, filtered: Floats, min_segment: int) -> Floats:
    """The probability, given all samples, that a segment starts at each sample: (n,); 0 for the first.

    Backwards: a segment that starts at t follows one whose start is distributed as the filter had it after t - 1,
    because the hazard does not depend on the run length (once a segment may end)."""
    n = len(offsets) - 1
    mass = np.zeros(n)
    low, high = offsets[n - 1], offsets[n]
    total = filtered[low:high].sum()
    for i in range(low, high):
        mass[starts[i]] += filtered[i] / total
    for t in range(n - 1, 0, -1):
        if mass[t] < NEGLIGIBLE:
            continue
        total = 0.0
        for i in range(offsets[t - 1], offsets[t]):
            if t - starts[i] >= min_segment:
                total += filtered[i]
        if total == 0:
            continue
        for i in range(offsets[t - 1], offsets[t]):
            if t - starts[i] >= min_segment:
                mass[starts[i]] += mass[t] * filtered[i] / total
    mass[0] = 0.0
    return mass


def probability_near(changes: Ints, probabilities: Floats, near: int) -> Floats:
    """For each change, how probable a change within `near` samples of it is, at most 1."""
    sums = np.concatenate([[0.0], np.cumsum(probabilities)])
    low, high = np.maximum(changes - near, 0), np.minimum(changes + near + 1, len(probabilities))
    near_mass: Floats = np.clip(sums[high] - sums[low], 0.0, 1.0)
    return near_mass
