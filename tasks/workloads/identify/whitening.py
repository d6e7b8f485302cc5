"""A shrunk covariance of few rows and many columns, and the change of coordinates in which it is the identity."""

from dataclasses import dataclass

import numpy as np

from tasks.workloads.telemetry import FloatArray

LEAST_ROWS = 2
NEGLIGIBLE = 1e-10  # of the largest singular value


@dataclass(frozen=True)
class Whitening:
    """directions: (r, f), orthonormal rows; gains: (r,), what the part along each is multiplied with, the part across
    all of them staying as it is."""

    directions: FloatArray
    gains: FloatArray

    def apply(self, rows: FloatArray) -> FloatArray:
        """Rows (n, f) in the new coordinates, (n, f)."""
        along = rows @ self.directions.T  # (n, r)
        return np.asarray(rows + (along * (self.gains - 1)) @ self.directions)


def learn_whitening(residuals: FloatArray) -> Whitening:
    """From deviations of rows from their own group's mean, (n, f), columns of about equal size.

    The covariance is shrunk towards m·I by the share of Ledoit and Wolf (2004). It is then scaled by m, so that
    directions in which nothing was seen keep their length, and those in which runs of a workload vary lose it."""
    n_rows, n_columns = residuals.shape
    if n_rows < LEAST_ROWS or not residuals.any():
        return Whitening(np.zeros((0, n_columns)), np.zeros(0))
    _, sizes, directions = np.linalg.svd(residuals, full_matrices=False)
    keep = sizes > NEGLIGIBLE * sizes[0]
    variances, directions = sizes[keep] ** 2 / n_rows, directions[keep]
    mean = float(variances.sum() / n_columns)
    share = _shrinkage(residuals, variances, mean)
    if share == 0:
        share = NEGLIGIBLE
    spread = (1 - share) * variances + share * mean
    return Whitening(directions, np.sqrt(share * mean / spread))


def _shrinkage(residuals: FloatArray, variances: FloatArray, mean: float) -> float:
    """Share of m·I in the estimate that is expected to be nearest to the true covariance: between 0 and 1."""
    n_rows, n_columns = residuals.shape
    apart = (np.sum(variances**2) - n_columns * mean**2) / n_columns  # ‖S − mI‖² / f
    squares = np.sum(residuals**2, axis=1)  # (n,), trace of x xᵀ
    quartic = np.sum(squares**2) / n_rows - np.sum(variances**2)  # mean of ‖x xᵀ − S‖²
    error = quartic / n_rows / n_columns
    return float(np.clip(error / apart, 0, 1)) if apart > 0 else 1.0
