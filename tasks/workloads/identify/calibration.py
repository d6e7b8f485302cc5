"""A probability of being unknown from several pieces of evidence: logistic, and never falling in any of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.telemetry import FloatArray

LEAST_DEVIATION = 1e-9


@dataclass(frozen=True)
class Calibration:
    """centre, deviation, weights: (n_evidence,), weights at least 0; intercept of the logistic function.

    is_learned: False where there was nothing to learn from and all evidence weighs the same."""

    centre: FloatArray
    deviation: FloatArray
    weights: FloatArray
    intercept: float
    is_learned: bool

    def scores(self, evidence: FloatArray) -> FloatArray:
        """Probability of being unknown, unknown and known ones being as frequent: (n,). evidence: (n, n_evidence)."""
        return _logistic((evidence - self.centre) / self.deviation @ self.weights + self.intercept)


def fit_calibration(evidence: FloatArray, is_unknown: NDArray[np.bool_], l2: float) -> Calibration:
    """Fit weights ≥ 0 by penalised likelihood, known and unknown ones weighing the same in sum.

    evidence: (n, n_evidence), each column rising with the suspicion. l2: penalty beside the mean log loss."""
    n_columns = evidence.shape[1]
    centre = evidence.mean(axis=0) if len(evidence) else np.zeros(n_columns)
    deviation = evidence.std(axis=0) if len(evidence) else np.ones(n_columns)
    deviation = np.where(deviation > LEAST_DEVIATION, deviation, 1.0)
    if is_unknown.all() or not is_unknown.any():
        return Calibration(centre, deviation, np.full(n_columns, 1 / n_columns), 0.0, is_learned=False)
    from scipy.optimize import minimize

    rows = np.column_stack([(evidence - centre) / deviation, np.ones(len(evidence))])
    share = np.where(is_unknown, 0.5 / is_unknown.sum(), 0.5 / (~is_unknown).sum())
    sign = np.where(is_unknown, 1.0, -1.0)
    penalty = np.append(np.full(n_columns, l2), 0.0)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        margin = sign * (rows @ weights)
        value = float(share @ np.logaddexp(0, -margin) + 0.5 * penalty @ weights**2)
        slope = -(share * sign * _logistic(-margin)) @ rows + penalty * weights
        return value, slope

    bounds = [(0.0, None)] * n_columns + [(None, None)]
    start = np.append(np.full(n_columns, 1 / n_columns), 0.0)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(centre, deviation, np.asarray(found[:-1]), float(found[-1]), is_learned=True)


def _logistic(values: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))
