"""The predicted distribution of a runtime: expected runtime, spread around it, and the job's own earlier runs."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.jobs.binned import Binned
from tasks.jobs.distribution import Floats
from tasks.jobs.predict.features_earlier import EarlierRuns, earlier_runs
from tasks.jobs.predict.location import Location, fit_location
from tasks.jobs.predict.own_runs import Ints, own_counts, own_values
from tasks.jobs.predict.predictor_params import LeanOn, PredictorParams
from tasks.jobs.predict.spread import Spread, fit_spread

logger = logging.getLogger(__name__)
LEAST_RUNTIME_S = 0.001  # runs of no time count as this long in logarithms, as they do in the features


@dataclass(frozen=True)
class Conditional:
    """P(runtime) of a run = (own + prior_runs · spread) / (n_own + prior_runs), over bins of runtime / expected.

    own: the n_own last runs of the job, against what was expected of each (lean_on residual: the features tell how
    long a run takes) or against what is expected now (runtime: the job's own runtimes tell it better). As they gather,
    the prediction leans on them (posterior mean under a Dirichlet prior). columns: features in their order."""

    location: Location
    spread: Spread
    prior_runs: float
    lean_on: LeanOn
    columns: tuple[str, ...]
    params: PredictorParams

    def expected_log_s(self, features: pd.DataFrame) -> Floats:
        """Log of the expected runtime in seconds: (n,)."""
        return np.asarray(self.location.expected_log_s(features[list(self.columns)]))

    def residual_bins(self, features: pd.DataFrame, runtime_s: Floats) -> Ints:
        """The bin of runtime over expected runtime of runs that have ended: (n,)."""
        residuals = log_s(runtime_s) - self.expected_log_s(features)
        return np.asarray(self.spread.grid.index(residuals))

    def own_runs(self, features: pd.DataFrame, earlier: EarlierRuns, bins: Ints) -> Floats:
        """The earlier runs of each row's job, as predict takes them: (n, n_bins) counts.

        features: (n, p) of the rows of `earlier`; bins: (n_past,) of earlier.past, as residual_bins has them."""
        n_bins, most = self.spread.grid.n_bins, self.params.lean.most_runs
        if self.lean_on == "residual":
            return own_counts(earlier, bins, n_bins, most=most)
        logs, rows = own_values(earlier, log_s(earlier.past["runtime_s"].to_numpy(dtype=float)), most=most)
        cells = rows * n_bins + self.spread.grid.index(logs - self.expected_log_s(features)[rows])
        counts = np.bincount(cells, minlength=len(features) * n_bins).reshape(-1, n_bins)
        return np.asarray(counts, dtype=float)

    def predict(self, features: pd.DataFrame, own: Floats | None = None) -> Binned:
        """Distributions for the rows of features; own: (n, n_bins) of own_runs, for a job without earlier runs 0."""
        frame = features[list(self.columns)]
        masses = self.prior_runs * self.spread.masses(frame, self.params.spread)
        if own is not None:
            masses = masses + self.spread.grid.smoothed(own, self.params.spread.smoothing_bins)
        masses = masses / masses.sum(axis=1, keepdims=True)
        return Binned(self.spread.grid.edges, masses, np.exp(self.location.expected_log_s(frame)), "ratio")


def log_s(runtime_s: Floats) -> Floats:
    """Logs of runtimes in seconds, of 0 s as of the least one."""
    return np.asarray(np.log(np.maximum(np.asarray(runtime_s, dtype=float), LEAST_RUNTIME_S)))


def fit_conditional(features: pd.DataFrame, runs: pd.DataFrame, params: PredictorParams) -> tuple[Conditional, Ints]:
    """The predictor, and the bin of each training run against what a model without it expected: (n,).

    features: (n, p); runs: the same rows in order of submission, with group_key, submitted_at, ended_at, runtime_s.
    How far it leans on own runs is chosen by CRPS on the latest part of the training runs, by a model of the rest."""
    choices = [(prior, way) for way in params.lean.ways for prior in params.lean.prior_runs]
    n = len(runs)
    cut = n - int(n * params.lean.tail_share)
    best = _best_lean(features, runs, cut, params, choices) if len(choices) > 1 and 0 < cut < n else choices[0]
    return _fit(features, runs, *best, params)


def _fit(
    features: pd.DataFrame, runs: pd.DataFrame, prior_runs: float, lean_on: LeanOn, params: PredictorParams
) -> tuple[Conditional, Ints]:
    logs = log_s(runs["runtime_s"].to_numpy(dtype=float))
    location, held_out = fit_location(features, logs, params.location)
    residuals = logs - held_out
    spread = fit_spread(features, residuals, params.spread)
    fitted = Conditional(location, spread, prior_runs, lean_on, tuple(features.columns), params)
    return fitted, spread.grid.index(residuals)


def _best_lean(
    features: pd.DataFrame, runs: pd.DataFrame, cut: int, params: PredictorParams, choices: list[tuple[float, LeanOn]]
) -> tuple[float, LeanOn]:
    early, seen = _fit(features[:cut], runs[:cut], *choices[0], params)
    late, runtime_s = features[cut:], runs["runtime_s"].to_numpy(dtype=float)[cut:]
    bins = np.concatenate([seen, early.residual_bins(late, runtime_s)])
    earlier = earlier_runs(runs[cut:], runs)
    scores: dict[tuple[float, LeanOn], float] = {}
    for way in params.lean.ways:
        own = replace(early, lean_on=way).own_runs(late, earlier, bins)
        for prior_runs in params.lean.prior_runs:
            told = replace(early, prior_runs=prior_runs).predict(late, own)
            scores[prior_runs, way] = float(told.crps(runtime_s).mean())
    logger.debug("CRPS in seconds by own runs that count as much as all else, and how they count: %s", scores)
    return min(choices, key=lambda choice: scores[choice])
