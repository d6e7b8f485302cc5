"""The augmented Dickey–Fuller statistic of many phases at once.

The same figure as `phases.dickey_fuller`, which asks statsmodels one phase after the other: here the regressions of all
phases are solved together, from sums over their samples. The statistic does not depend on level and unit of a phase,
so each is centred and scaled first."""

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.phase_params import PhaseParams
from tasks.workloads.phases import ADF_LIMIT, LEAST_DEVIATION, LEAST_RESIDUAL
from tasks.workloads.telemetry import FloatArray

LEAST_EIGENVALUE = 1e-12  # of the regressors' correlations, relative to the largest: below it they are collinear

Indices = NDArray[np.int64]


def dickey_fuller_each(values: FloatArray, phase_of: Indices, n_phases: int, params: PhaseParams) -> FloatArray:
    """The statistic (constant, no trend) of each phase, NaN where it is undetermined: (n_phases,).

    values: (n,), finite, phase after phase, each in order of time; phase_of: (n,), rising."""
    counts = np.bincount(phase_of, minlength=n_phases)
    safe = np.maximum(counts, 1)
    mean = np.bincount(phase_of, values, n_phases) / safe
    centred = values - mean[phase_of]
    spread = np.sqrt(np.bincount(phase_of, centred**2, n_phases) / safe)
    is_moving = (counts >= max(params.adf_min_samples, 2 * params.adf_lags + 5)) & (
        spread > LEAST_DEVIATION * np.maximum(1, np.abs(mean))
    )
    found = np.full(n_phases, np.nan)
    asked = np.flatnonzero(is_moving)
    if len(asked):
        is_asked = is_moving[phase_of]
        place = (np.cumsum(is_moving) - 1)[phase_of[is_asked]]
        found[asked] = _statistics(centred[is_asked] / spread[phase_of[is_asked]], place, len(asked), params.adf_lags)
    return found


def _statistics(scaled: FloatArray, phase_of: Indices, n_phases: int, lags: int) -> FloatArray:
    """t of the level before in Δy_t ~ y_(t−1), Δy_(t−1) … Δy_(t−lags), 1; scaled: mean 0, deviation 1 in each phase."""
    starts = np.searchsorted(phase_of, np.arange(n_phases))
    place = np.arange(len(scaled)) - starts[phase_of]
    steps = np.diff(scaled, prepend=scaled[:1])
    rows = np.flatnonzero(place > lags)
    lagged = [steps[rows - lag] for lag in range(1, lags + 1)]
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
    variance = left / np.maximum(freedom, 1)
    error = np.sqrt(variance * inverse[:, 0, 0])
    is_determined = is_free & (freedom > 0) & (error > 0) & ~is_perfect
    statistic = slopes[:, 0] / np.where(is_determined, error, 1)
    return np.where(is_determined, np.clip(statistic, -ADF_LIMIT, ADF_LIMIT), np.nan)


def _are_independent(squares: FloatArray) -> NDArray[np.bool_]:
    """Whether the regressors of each phase have full rank. squares: (n_phases, p, p), XᵀX."""
    size = np.sqrt(np.einsum("paa->pa", squares))
    safe = np.where(size > 0, size, 1)
    eigenvalues = np.linalg.eigvalsh(squares / safe[:, :, None] / safe[:, None, :])
    return np.asarray((size > 0).all(axis=1) & (eigenvalues[:, 0] > LEAST_EIGENVALUE * eigenvalues[:, -1]))


def _have_steps(steps: FloatArray, place: Indices, phase_of: Indices, n_phases: int) -> NDArray[np.bool_]:
    """Whether the steps of each phase differ from each other: those of a straight line do not."""
    inner = place > 0
    count = np.maximum(np.bincount(phase_of[inner], minlength=n_phases), 1)
    mean = np.bincount(phase_of[inner], steps[inner], n_phases) / count
    variance = np.bincount(phase_of[inner], (steps[inner] - mean[phase_of[inner]]) ** 2, n_phases) / count
    return np.asarray(np.sqrt(variance) > LEAST_DEVIATION)
