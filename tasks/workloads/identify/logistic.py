"""Logistic models of few features, by penalised likelihood."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.telemetry import FloatArray


@dataclass(frozen=True)
class Logistic:
    """p = 1 / (1 + exp(−(weights · (x − centre) / deviation + intercept)))."""

    centre: FloatArray
    deviation: FloatArray
    weights: FloatArray
    intercept: float

    def probability(self, features: FloatArray) -> FloatArray:
        """(n,). features: (n, f)."""
        margin = (features - self.centre) / self.deviation @ self.weights + self.intercept
        return probability_of(margin)


def fit_logistic(features: FloatArray, is_true: NDArray[np.bool_], penalty: float, least: float = -np.inf) -> Logistic:
    """Both answers weigh the same in sum; even odds where there is one answer alone. features: (n, f).

    penalty: on the squared weights, beside the mean log loss. least: value of a weight."""
    n_columns = features.shape[1]
    centre = features.mean(axis=0) if len(features) else np.zeros(n_columns)
    deviation = features.std(axis=0) if len(features) else np.ones(n_columns)
    deviation = np.where(deviation > 1e-9, deviation, 1.0)
    if not len(features) or is_true.all() or not is_true.any():
        always = 3.0 if len(features) and is_true.all() else -3.0
        return Logistic(centre, deviation, np.zeros(n_columns), always)
    from scipy.optimize import minimize

    table = np.column_stack([(features - centre) / deviation, np.ones(len(features))])
    share = np.where(is_true, 0.5 / is_true.sum(), 0.5 / (~is_true).sum())
    sign = np.where(is_true, 1.0, -1.0)
    penalties = np.append(np.full(n_columns, penalty), 0.0)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        margin = sign * (table @ weights)
        value = float(share @ np.logaddexp(0, -margin) + 0.5 * penalties @ weights**2)
        slope = -(share * sign * 0.5 * (1 - np.tanh(0.5 * margin))) @ table + penalties * weights
        return value, slope

    bounds = [(least, np.inf)] * n_columns + [(-np.inf, np.inf)]
    weights = minimize(loss, np.zeros(n_columns + 1), jac=True, bounds=bounds, method="L-BFGS-B").x
    return Logistic(centre, deviation, np.asarray(weights[:-1]), float(weights[-1]))


LEAST_PROBABILITY, MOST_PROBABILITY = 1e-6, 1 - 1e-6  # whose odds are taken


def log_odds(probability: FloatArray | float) -> FloatArray:
    """Of probabilities, those of 0 and 1 finite."""
    kept = np.clip(probability, LEAST_PROBABILITY, MOST_PROBABILITY)
    return np.asarray(np.log(kept / (1 - kept)))


def probability_of(odds: FloatArray | float) -> FloatArray:
    """Of log odds."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * np.asarray(odds))))
