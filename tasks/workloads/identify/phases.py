"""A run cut into phases, and each phase of each counter summarised: the paper's fingerprint (CWD, V-A to V-C).

Change points are looked for in the logarithm of rates and the plain value of gauges. Detection sets each counter on a
scale of its own, so a run is cut once, whatever it is compared with later. Counters are summarised by equation 7, which
compares a run with itself: what remains is when a counter moved, not how much there was of it. Phases of the workload
(V-D) are summarised on a scale learned over training runs, which keeps levels."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.workloads.changepoints.finding import ChangePointParams, find_changepoints
from tasks.workloads.changepoints.online import PriorParams
from tasks.workloads.identify.counters import columns_of
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

QUANTILES = (0.1, 0.25, 0.75, 0.9)  # the distribution of a phase: a histogram of five samples is mostly empty
STATISTICS = ("mean", "median", "variance", "adf", *(f"q{round(100 * share)}" for share in QUANTILES))
ADF = STATISTICS.index("adf")
UNDETERMINED = 0.0  # of the Dickey–Fuller statistic: between a random walk (about -1.5) and an explosion (above 0)
ADF_MIN_SAMPLES = 20  # below which it is undetermined
ADF_LAGS = 1
ADF_LIMIT = 50.0  # beyond it the statistic says no more, and would outweigh all else in a distance
VOTE_SHARE = 0.1  # of the varying counters that must change for the workload to change phase
VOTE_SAMPLES = 1  # by which changes of counters may lie apart
LEAST_DEVIATION = 1e-6  # relative to the level: below it rounding would be called stationary
LEAST_RESIDUAL = 1e-12  # of a regression, as a share of the squares that it explains: below it is a perfect fit
LEAST_EIGENVALUE = 1e-12  # of the regressors' correlations, relative to the largest: below it they are collinear
# the paper's own detection: independent noise around levels and lines, one belief for all counters of all runs
OF_PHASES = ChangePointParams(expected_run_length=1000, prior=PriorParams())
SCALED_LIMIT = 8.0  # of a value on the learned scale, in deviations

Bounds = NDArray[np.int64]


@dataclass(frozen=True)
class CounterScale:
    """Centre and spread of each counter over the samples of the training runs, (n_counters,) each.

    logged: whether the counter is a rate, scaled by sign(x) · log(1 + |x|). A counter that never varied: spread 0."""

    counters: tuple[str, ...]
    logged: tuple[bool, ...]
    centre: FloatArray
    spread: FloatArray


@dataclass(frozen=True)
class Cut:
    """The phases of a run. bounds: of each counter where its phases begin, and the end; workload_bounds: of the run."""

    counters: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    workload_bounds: Bounds


@dataclass(frozen=True)
class Fingerprint:
    """What the paper keeps of a run.

    bounds: of each counter where its phases begin, and the end. summaries: of each counter (n_phases, k),
    k = len(STATISTICS). workload_bounds: phases of the workload (V-D). workload_phases: (n_phases, n_counters · k),
    every counter summarised over the workload's phases."""

    run_id: str
    workload: str | None
    counters: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    summaries: tuple[FloatArray, ...]
    workload_bounds: Bounds
    workload_phases: FloatArray

    @property
    def most_phases(self) -> int:
        """q: the most phases that a counter of the run has."""
        return max(len(summary) for summary in self.summaries)


def equation_7(values: FloatArray) -> FloatArray:
    """y = |x − μ| / σ for each column of (n_samples, n_counters), μ and σ over the run; 0 where it is constant.

    NaN stays NaN and does not count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a counter without a single value
        centre, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    return np.abs(_standardised(values, centre, spread))


def learn_scale(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> CounterScale:
    """Centre and spread of the named counters over all samples of the runs, each run with the same weight.

    A counter that a run lacks is learned from others; one that no run has gets NaN. Raises ValueError without runs."""
    if not runs:
        raise ValueError("no run to learn a scale from; expected at least one")
    logged = tuple(counter.is_rate for counter in counters)
    names = tuple(counter.name for counter in counters)
    moments = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for run in runs:
            values = logarithm_of_rates(columns_of(run, names), logged)
            moments.append([np.nanmean(values, axis=0), np.nanmean(values**2, axis=0)])
        mean, mean_square = np.nanmean(np.array(moments), axis=0)
    variance = np.maximum(mean_square - mean**2, 0)
    is_constant = variance <= (1e-9 * np.maximum(np.abs(mean), 1)) ** 2  # rounding of the squares
    return CounterScale(names, logged, mean, np.where(is_constant, 0, np.sqrt(variance)))


def on_scale(values: FloatArray, scale: CounterScale) -> FloatArray:
    """Values (n_samples, n_counters), columns in the order of the scale, in deviations of the training runs."""
    standardised = _standardised(logarithm_of_rates(values, scale.logged), scale.centre, scale.spread)
    return np.clip(standardised, -SCALED_LIMIT, SCALED_LIMIT)


def logarithm_of_rates(values: FloatArray, logged: Sequence[bool]) -> FloatArray:
    """sign(x) · log(1 + |x|) for the columns that are rates: they span orders of magnitude."""
    return np.where(np.asarray(logged), np.sign(values) * np.log1p(np.abs(values)), values)


def cut_run(run: Telemetry, counters: Sequence[Counter]) -> Cut:
    """The phases of a run on these counters; a counter that it lacks has one. Raises ValueError without a sample."""
    names = tuple(counter.name for counter in counters)
    values = logarithm_of_rates(columns_of(run, names), [counter.is_rate for counter in counters])
    bounds = []
    for column in values.T:
        present = column[np.isfinite(column)]
        is_constant = len(present) < 2 or bool((present == present[0]).all())
        if is_constant:
            bounds.append(bounds_of([], run.n_samples))
        else:
            changes = find_changepoints(column[:, None], OF_PHASES).indices
            bounds.append(bounds_of(changes, run.n_samples))
    return Cut(names, tuple(bounds), shared_bounds(bounds))


def fingerprints_of(
    runs: Sequence[Telemetry],
    counters: Sequence[Counter],
    scale: CounterScale | None = None,
    cuts: Mapping[str, Cut] | None = None,
) -> list[Fingerprint]:
    """The fingerprint of each run on these counters. scale: of the phases of the workload; without one equation 7.

    cuts: phases found before on these counters, by run id; the others are looked for. Raises ValueError for a run
    without samples."""
    made = []
    for run in runs:
        cut = (cuts or {}).get(run.run_id) or cut_run(run, counters)
        values = columns_of(run, cut.counters)
        by_itself = equation_7(values)
        compared = by_itself if scale is None else on_scale(values, scale)
        over_workload = summarise(compared, (cut.workload_bounds,) * len(cut.counters))
        made.append(
            Fingerprint(
                run_id=run.run_id,
                workload=run.workload,
                counters=cut.counters,
                bounds=cut.bounds,
                summaries=tuple(summarise(by_itself, cut.bounds)),
                workload_bounds=cut.workload_bounds,
                workload_phases=np.concatenate(over_workload, axis=1),
            )
        )
    return made


def bounds_of(changepoints: Sequence[int] | NDArray[np.int64], n_samples: int) -> Bounds:
    """Where phases begin, and the end: 0 = t_0 < t_1 < … < t_(M+1) = n_samples (III-A1).

    Raises ValueError for a change point outside of 1 to n_samples − 1 or no sample."""
    inner = np.unique(np.asarray(changepoints, dtype=np.int64))
    if n_samples < 1:
        raise ValueError("a run without a sample has no phase")
    if len(inner) and (inner[0] < 1 or inner[-1] >= n_samples):
        raise ValueError(f"change points {inner.tolist()} of {n_samples} samples: expected 1 to {n_samples - 1}")
    return np.concatenate([[0], inner, [n_samples]]).astype(np.int64)


def shared_bounds(bounds: Sequence[Bounds]) -> Bounds:
    """Phases of the workload from those of its counters: where at least VOTE_SHARE of the varying ones change together.

    V-D compares phases of workloads, V-B finds those of counters; this is the rule between them. A counter votes for
    each of its change points; votes within VOTE_SAMPLES count together; the sample with most votes (of equal ones
    the first) becomes a change point, and takes the votes near it away. Raises ValueError for no counter."""
    if not bounds:
        raise ValueError("no counter, hence no phase; expected at least one")
    n_samples = int(bounds[0][-1])
    inner = [edges[1:-1] for edges in bounds]
    n_needed = VOTE_SHARE * max(1, sum(len(edges) > 0 for edges in inner))
    votes: NDArray[np.bool_] = np.zeros((len(inner), n_samples), dtype=np.bool_)
    for counter, points in enumerate(inner):
        votes[counter, points] = True
    changes: list[int] = []
    while True:
        near, there = _within_reach(votes).sum(axis=0), votes.sum(axis=0)
        best = int((near * (len(votes) + 1) + there).argmax())  # of equal ones that with most votes of its own
        if near[best] == 0 or near[best] < n_needed:
            return bounds_of(sorted(changes), n_samples)
        changes.append(best)
        votes[:, max(0, best - VOTE_SAMPLES) : best + VOTE_SAMPLES + 1] = False


def summarise(values: FloatArray, bounds: Sequence[Bounds]) -> list[FloatArray]:
    """One row of STATISTICS for each phase of each counter: (n_phases, n_statistics) a counter.

    values: (n_samples, n_counters), normalised; NaN does not count, and a phase of nothing else has only zeros.
    bounds: of each counter where its phases begin, and the end. All phases are summarised at once."""
    n_phases = [len(edges) - 1 for edges in bounds]
    lengths = np.concatenate([np.diff(edges) for edges in bounds])
    phase_of = np.repeat(np.arange(len(lengths)), lengths)
    flat = values.T.ravel()  # counter after counter: (n_counters · n_samples,)
    is_there = np.isfinite(flat)
    table = _summaries(flat[is_there], phase_of[is_there], len(lengths))
    return np.split(table, np.cumsum(n_phases)[:-1])


def dickey_fuller(values: FloatArray, phase_of: Bounds, n_phases: int) -> FloatArray:
    """The augmented Dickey–Fuller statistic (constant, no trend) of each phase, NaN where undetermined: (n_phases,).

    values: (n,), finite, phase after phase, each in order of time; phase_of: (n,), rising. Undetermined: fewer than
    ADF_MIN_SAMPLES, constant, or a regression that fits perfectly (a ramp, a single early spike). The regressions of
    all phases are solved together, from sums over their samples; the statistic does not depend on level and unit of a
    phase, so each is centred and scaled first."""
    counts = np.bincount(phase_of, minlength=n_phases)
    safe = np.maximum(counts, 1)
    mean = np.bincount(phase_of, values, n_phases) / safe
    centred = values - mean[phase_of]
    spread = np.sqrt(np.bincount(phase_of, centred**2, n_phases) / safe)
    is_moving = (counts >= ADF_MIN_SAMPLES) & (spread > LEAST_DEVIATION * np.maximum(1, np.abs(mean)))
    statistics = np.full(n_phases, np.nan)
    moving = np.flatnonzero(is_moving)
    if len(moving):
        inside = is_moving[phase_of]
        place = (np.cumsum(is_moving) - 1)[phase_of[inside]]
        statistics[moving] = _adf_statistics(centred[inside] / spread[phase_of[inside]], place, len(moving))
    return statistics


def _standardised(values: FloatArray, centre: FloatArray, spread: FloatArray) -> FloatArray:
    """(values − centre) / spread; 0 for a present value where the spread is 0 or only rounding."""
    is_constant = ~(spread > 1e-12 * np.maximum(np.abs(centre), 1e-300))
    ratios = (values - centre) / np.where(is_constant, 1, spread)
    return np.where(is_constant & np.isfinite(values), 0, ratios)


def _within_reach(votes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a counter has a vote at most VOTE_SAMPLES away; a change point is never at sample 0."""
    padded = np.pad(votes, [(0, 0), (VOTE_SAMPLES, VOTE_SAMPLES)])
    near = np.lib.stride_tricks.sliding_window_view(padded, 2 * VOTE_SAMPLES + 1, axis=1).any(axis=2)
    return np.asarray(near & (np.arange(votes.shape[1]) > 0))


def _summaries(values: FloatArray, phase_of: Bounds, n_phases: int) -> FloatArray:
    counts = np.bincount(phase_of, minlength=n_phases)
    safe = np.maximum(counts, 1)
    mean = np.bincount(phase_of, values, n_phases) / safe
    variance = np.bincount(phase_of, (values - mean[phase_of]) ** 2, n_phases) / safe
    adf = np.nan_to_num(dickey_fuller(values, phase_of, n_phases), nan=UNDETERMINED)
    quantiles = np.zeros((n_phases, 1 + len(QUANTILES)))  # a phase without samples has zeros
    of_phases = pd.Series(values).groupby(phase_of).quantile(np.array([0.5, *QUANTILES]))
    quantiles[counts > 0] = of_phases.to_numpy().reshape(-1, quantiles.shape[1])
    return np.column_stack([mean, quantiles[:, 0], variance, adf, quantiles[:, 1:]])  # in the order of STATISTICS


def _adf_statistics(scaled: FloatArray, phase_of: Bounds, n_phases: int) -> FloatArray:
    """t of the level before in Δy_t ~ y_(t−1), Δy_(t−1) … Δy_(t−lags), 1; scaled: mean 0, deviation 1 in each phase."""
    starts = np.searchsorted(phase_of, np.arange(n_phases))
    place = np.arange(len(scaled)) - starts[phase_of]
    steps = np.diff(scaled, prepend=scaled[:1])
    rows = np.flatnonzero(place > ADF_LAGS)
    lagged = [steps[rows - lag] for lag in range(1, ADF_LAGS + 1)]
    design = np.stack([scaled[rows - 1], *lagged, np.ones(len(rows))], axis=1)  # (n_rows, lags + 2)
    answer, phase = steps[rows], phase_of[rows]
    n_columns = design.shape[1]
    squares = np.empty((n_phases, n_columns, n_columns))
    for a in range(n_columns):
        for b in range(a, n_columns):
            squares[:, a, b] = squares[:, b, a] = np.bincount(phase, design[:, a] * design[:, b], n_phases)
    products = np.stack([np.bincount(phase, column * answer, n_phases) for column in design.T], axis=1)
    is_free = _are_independent(squares) & _have_steps(steps, place, phase_of, n_phases)
    inverse = np.zeros_like(squares)
    inverse[is_free] = np.linalg.inv(squares[is_free])
    slopes = np.einsum("pab,pb->pa", inverse, products)
    residual = answer - np.einsum("ra,ra->r", design, slopes[phase])
    freedom = np.bincount(phase, minlength=n_phases) - n_columns
    left = np.bincount(phase, residual**2, n_phases)
    is_perfect = left <= LEAST_RESIDUAL * np.bincount(phase, answer**2, n_phases)
    error = np.sqrt(left / np.maximum(freedom, 1) * inverse[:, 0, 0])
    is_determined = is_free & (freedom > 0) & (error > 0) & ~is_perfect
    statistic = slopes[:, 0] / np.where(is_determined, error, 1)
    return np.where(is_determined, np.clip(statistic, -ADF_LIMIT, ADF_LIMIT), np.nan)


def _are_independent(squares: FloatArray) -> NDArray[np.bool_]:
    """Whether the regressors of each phase have full rank. squares: (n_phases, p, p), XᵀX."""
    size = np.sqrt(np.einsum("paa->pa", squares))
    safe = np.where(size > 0, size, 1)
    eigenvalues = np.linalg.eigvalsh(squares / safe[:, :, None] / safe[:, None, :])
    return np.asarray((size > 0).all(axis=1) & (eigenvalues[:, 0] > LEAST_EIGENVALUE * eigenvalues[:, -1]))


def _have_steps(steps: FloatArray, place: Bounds, phase_of: Bounds, n_phases: int) -> NDArray[np.bool_]:
    """Whether the steps of each phase differ from each other: those of a straight line do not."""
    inner = place > 0
    count = np.maximum(np.bincount(phase_of[inner], minlength=n_phases), 1)
    mean = np.bincount(phase_of[inner], steps[inner], n_phases) / count
    variance = np.bincount(phase_of[inner], (steps[inner] - mean[phase_of[inner]]) ** 2, n_phases) / count
    return np.asarray(np.sqrt(variance) > LEAST_DEVIATION)
