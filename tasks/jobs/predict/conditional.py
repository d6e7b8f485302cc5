"""The predicted distribution of a runtime: expected runtime, spread around it, and the job's own earlier runs."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.jobs.binned import Binned
from tasks.jobs.distribution import BLOCK, Floats
from tasks.jobs.predict.features_earlier import EarlierRuns, earlier_runs
from tasks.jobs.predict.location import Location, fit_location, stretches
from tasks.jobs.predict.own_runs import Ints, own_counts, own_counts_by
from tasks.jobs.predict.predictor_params import LeanOn, PredictorParams
from tasks.jobs.predict.spread import Spread, fit_spread
from tasks.jobs.scores import (
    LEVEL,
    coverage_of,
)

logger = logging.getLogger(__name__)
LEAST_RUNTIME_S = 0.001  # runs of no time count as this long in logarithms, as they do in the features


@dataclass(frozen=True)
class Conditional:
    """P(runtime) of a run = (own + prior_runs · spread) / (n_own + prior_runs), over bins of runtime / expected.

    own: the n_own last runs of the job, against what was expected of each (lean_on residual: the features tell how
    long a run takes) or against what is expected now (runtime: the job's own runtimes tell it better). As they gather,
    the prediction leans on them (posterior mean under a Dirichlet prior). columns: features in their order.
    width: power to which runtime / expected is raised, below 1 narrower."""

    location: Location
    spread: Spread
    prior_runs: float
    lean_on: LeanOn
    columns: tuple[str, ...]
    params: PredictorParams
    width: float = 1.0

    def expected_log_s(self, features: pd.DataFrame) -> Floats:
        """Log of the expected runtime in seconds: (n,)."""
        return np.asarray(self.location.expected_log_s(features[list(self.columns)]))

    def residual_bins(self, features: pd.DataFrame, runtime_s: Floats) -> Ints:
        """The bin of runtime over expected runtime of runs that have ended: (n,)."""
        residuals = log_s(runtime_s) - self.expected_log_s(features)
        return np.asarray(self.spread.grid.index(residuals))

    def predict_after(self, features: pd.DataFrame, earlier: EarlierRuns, bins: Ints) -> Binned:
        """Distributions for the rows of features, which know the runs of `earlier`: predict with own_runs, in one."""
        expected = self.expected_log_s(features)
        own = self.own_runs(features, earlier, bins, expected_log_s=expected)
        return self.predict(features, own, expected_log_s=expected)

    def own_runs(
        self, features: pd.DataFrame, earlier: EarlierRuns, bins: Ints, *, expected_log_s: Floats | None = None
    ) -> Floats:
        """The earlier runs of each row's job, as predict takes them: (n, n_bins) counts.

        features: (n, p) of the rows of `earlier`; bins: (n_past,) of earlier.past, as residual_bins has them;
        expected_log_s: (n,) of the same features, where it is known already."""
        n_bins, most = self.spread.grid.n_bins, self.params.lean.most_runs
        if self.lean_on == "residual":
            return own_counts(earlier, bins, n_bins, most=most)
        expected = self.expected_log_s(features) if expected_log_s is None else expected_log_s
        logs = log_s(earlier.past["runtime_s"].to_numpy(dtype=float))
        return own_counts_by(
            earlier, logs, lambda seen, rows: self.spread.grid.index(seen - expected[rows]), n_bins, most=most
        )

    def predict(
        self, features: pd.DataFrame, own: Floats | None = None, *, expected_log_s: Floats | None = None
    ) -> Binned:
        """Distributions for the rows of features; own: (n, n_bins) of own_runs, for a job without earlier runs 0;
        expected_log_s: (n,) of the same features, where it is known already."""
        frame, n = features[list(self.columns)], len(features)
        masses = np.empty((n, self.spread.grid.n_bins))
        for first in range(0, n, BLOCK):  # what fits the cache is faster
            rows = slice(first, first + BLOCK)
            masses[rows] = self._masses(frame.iloc[rows], None if own is None else own[rows])
        expected = self.expected_log_s(frame) if expected_log_s is None else expected_log_s
        return Binned(self.spread.grid.edges, masses, np.exp(expected), "ratio")

    def _masses(self, frame: pd.DataFrame, own: Floats | None) -> Floats:
        masses = self.prior_runs * self.spread.masses(frame, self.params.spread)
        if own is not None:
            masses = masses + self.spread.grid.smoothed(own, self.params.spread.smoothing_bins)
        return self.spread.grid.widened(masses / masses.sum(axis=1, keepdims=True), self.width)


def log_s(runtime_s: Floats) -> Floats:
    """Logs of runtimes in seconds, of 0 s as of the least one."""
    return np.asarray(np.log(np.maximum(np.asarray(runtime_s, dtype=float), LEAST_RUNTIME_S)))


def fit_conditional(features: pd.DataFrame, runs: pd.DataFrame, params: PredictorParams) -> tuple[Conditional, Ints]:
    """The predictor, and the bin of each training run against what a model without it expected: (n,).

    features: (n, p); runs: the same rows in order of submission, with group_key, submitted_at, ended_at, runtime_s.
    How far it leans on own runs is chosen by CRPS on the latest part of the training runs, by a model of the rest; then
    the width of all distributions, so that 90 % intervals hold 90 % of these runs."""
    choices = [(prior, way) for way in params.lean.ways for prior in params.lean.prior_runs]
    is_open = len(choices) > 1 or len(params.lean.widths) > 1
    n = len(runs)
    cut = n - int(n * params.lean.tail_share)
    first = (*choices[0], min(params.lean.widths, key=lambda width: abs(width - 1)))
    best = _best_lean(features, runs, cut, params, choices) if is_open and 0 < cut < n else first
    prior_runs, lean_on, width = best
    fitted, bins = _fit(features, runs, prior_runs, lean_on, params)
    return replace(fitted, width=width), bins


def _fit(
    features: pd.DataFrame, runs: pd.DataFrame, prior_runs: float, lean_on: LeanOn, params: PredictorParams
) -> tuple[Conditional, Ints]:
    logs = log_s(runs["runtime_s"].to_numpy(dtype=float))
    location, held_out = fit_location(features, logs, params.location)
    residuals = logs - held_out
    # each stretch missed by a level of its own, which would be learnt as spread through features that grow with time
    stretch = stretches(len(runs), params.location.n_folds)
    residuals = residuals - pd.Series(residuals).groupby(stretch).transform("median").to_numpy()
    spread = fit_spread(features, residuals, params.spread)
    fitted = Conditional(location, spread, prior_runs, lean_on, tuple(features.columns), params)
    return fitted, spread.grid.index(residuals)


def _best_lean(
    features: pd.DataFrame, runs: pd.DataFrame, cut: int, params: PredictorParams, choices: list[tuple[float, LeanOn]]
) -> tuple[float, LeanOn, float]:
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
    prior_runs, lean_on = min(choices, key=lambda choice: scores[choice])
    chosen = replace(early, prior_runs=prior_runs, lean_on=lean_on)
    own = chosen.own_runs(late, earlier, bins)
    return prior_runs, lean_on, calibrated(chosen, late, own, runtime_s).width


def calibrated(model: Conditional, features: pd.DataFrame, own: Floats, runtime_s: Floats) -> Conditional:
    """The model with the width whose 90 % intervals come closest to holding 90 % of these runs.

    features: (n, p) and own: (n, n_bins) of runs that the model did not learn from, runtime_s: (n,) what they took."""
    misses: dict[float, float] = {}
    for width in model.params.lean.widths:
        share = coverage_of(replace(model, width=width).predict(features, own), runtime_s).share
        misses[width] = abs((LEVEL if share is None else share) - LEVEL)
    return replace(model, width=min(misses, key=lambda width: (misses[width], abs(width - 1))))
