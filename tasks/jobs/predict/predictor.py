"""How long a run will take, as a distribution, from what is known when it is submitted.

P(runtime) = w_0 forest(features) + w_1 boosted quantiles(features) + w_2 job's last 10 runs + w_3 its last 50
+ w_4 its user's runs with the same request + w_5 runs with the same request in the same queue, recalibrated by the last
runs that the model had not learnt from, and cut off at the time limit where the log shows that limits are kept. The
weights are those with the least CRPS on the latest part of the training runs, by trees of the earlier part
(`pool.best_weights`), so history counts as much as it deserves: all in a log where nothing else tells more, nothing
where the features say it better."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from tasks.jobs.distribution import (
    Empirical,
    Floats,
    History,
)
from tasks.jobs.predict.boosted import Boosted, fit_boosted
from tasks.jobs.predict.forest import Forest, fit_forest
from tasks.jobs.predict.peers import JOB, LEAST_RUNTIME_S, REQUEST, USER_REQUEST, Histories
from tasks.jobs.predict.pool import (
    LOG_RANGE,
    N_LEVELS,
    Recalibration,
    best_weights,
    learn_grace,
    limited,
    mixture,
    order_quantiles,
    recalibration,
)

FOREST, BOOSTED = "forest", "boosted"
POOLED: dict[str, tuple[str, int]] = {  # name of a part: its peers, and how many of their last runs
    "job, last 10": (JOB, 10),
    "job": (JOB, 50),
    "user and request": (USER_REQUEST, 10),
    "request": (REQUEST, 50),
}
RELATIVE = ("input_usual", "job_median10", "user_request_median10", "user_median10", "log_median")
RELATIVE_GAIN = 0.015  # of CRPS, for the forest to be relative: as much as seeds move it, and it can go beyond all runs
LEAST_SHARE = 1e-3  # of the median runtime: shorter runs count as this long
EARLY_SHARE = 0.6  # of the training runs: what the weights are chosen with learns from these, and is tried on the rest
LEAST_BOOSTED = 2_000  # runs to choose weights with: of fewer, levels one by one learn chance
BOOSTED_LEVELS = np.array([0.05, 0.15, 0.25, 0.4, 0.5, 0.6, 0.75, 0.85, 0.95])
DIGITS = 11  # of a predicted time behind the first
LEAST_TRIED = 20  # runs; with fewer all parts count the same
MAIN = "predictor.json"


@dataclass(frozen=True)
class Predictor:
    """boosted: None in a log too short for it; weights: of the parts of the pool, they sum to 1; is_relative: the trees
    are of the runtime over what peers usually take; usual_log_s: stands in for that without peers; recalibration: of
    the pool; grace: of time limits, None where they are not kept; columns: features in their order; least_s: shorter
    runs count as this long."""

    forest: Forest
    boosted: Boosted | None
    weights: Mapping[str, float]
    is_relative: bool
    usual_log_s: float
    recalibration: Recalibration
    grace: float | None
    columns: tuple[str, ...]
    least_s: float

    def predict(self, features: pd.DataFrame, known: Histories, *, shift: Floats | None = None) -> Empirical:
        """Distributions for the rows of features, in seconds. known: their Histories; shift: (n,) added to log seconds.

        Each is held as N_LEVELS values of the same weight, the quantiles at LEVELS."""
        quantiles = self.recalibration.applied(self.quantiles(features, known))
        if shift is not None:
            quantiles = quantiles + shift[:, None]
        return told_as(limited(quantiles, features, self.grace))

    def quantiles(self, features: pd.DataFrame, known: Histories) -> Floats:
        """Quantiles of the pool at LEVELS in logs of seconds, before recalibration and limit: (n, n_levels)."""
        parts = self._parts(features, known, [part for part, weight in self.weights.items() if weight > 0])
        return mixture(list(parts.values()), np.array([self.weights[part] for part in parts]))

    def expected_log_s(self, features: pd.DataFrame) -> Floats:
        """The mean log of runtime in seconds that the trees expect: (n,)."""
        return np.asarray(self.forest.mean(features[list(self.columns)]) + self._base(features))

    def _parts(self, features: pd.DataFrame, known: Histories, asked: list[str]) -> dict[str, Floats]:
        columns, base = features[list(self.columns)], self._base(features)[:, None]
        of_forest = self.forest.quantiles(columns, N_LEVELS) + base
        found = {part: _part(part, of_forest, known) for part in asked if part != BOOSTED}
        if BOOSTED in asked and self.boosted is not None:
            found[BOOSTED] = self.boosted.quantiles(columns) + base
        return {part: found[part] for part in asked}

    def _base(self, features: pd.DataFrame) -> Floats:
        return _usual(features, self.usual_log_s) if self.is_relative else np.zeros(len(features))

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        self.forest.save(folder)
        if self.boosted is not None:
            self.boosted.save(folder)
        main = {
            "weights": dict(self.weights),
            "is_relative": self.is_relative,
            "usual_log_s": self.usual_log_s,
            "levels": self.recalibration.levels.tolist(),
            "moved": self.recalibration.moved.tolist(),
            "grace": self.grace,
            "columns": list(self.columns),
            "least_s": self.least_s,
        }
        (folder / MAIN).write_text(json.dumps(main, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What save wrote. Raises BadInput, OSError, ValueError, KeyError or TypeError for anything else."""
        main = json.loads((folder / MAIN).read_text(encoding="utf-8"))
        columns = tuple(map(str, main["columns"]))
        grace = None if main["grace"] is None else float(main["grace"])
        weights = {str(part): float(weight) for part, weight in main["weights"].items()}
        if unknown := [part for part in weights if part not in (FOREST, BOOSTED, *POOLED)]:
            raise ValueError(f"no part {unknown[0]!r}")
        if not (min(weights.values(), default=0) >= 0 and np.isclose(sum(weights.values()), 1)):
            raise ValueError(f"weights {list(weights.values())}; expected some of at least 0 that sum to 1")
        levels, moved = (np.array(main[name], dtype=float) for name in ("levels", "moved"))
        if not levels.shape == moved.shape == (N_LEVELS,) or (abs(levels - 0.5) > 0.5).any():
            raise ValueError(f"levels or moved; expected {N_LEVELS} numbers, levels from 0 to 1")
        return cls(
            Forest.load(folder, len(columns)),
            Boosted.load(folder, len(columns)) if BOOSTED in weights else None,
            weights,
            bool(main["is_relative"]),
            float(main["usual_log_s"]),
            Recalibration(levels, moved),
            grace,
            columns,
            float(main["least_s"]),
        )


@dataclass(frozen=True)
class Tried:
    """What an earlier model said of the training runs that it had not learnt from, the latest.

    rows: their places among the training runs, ascending; quantiles: (m, n_levels) of the pool, log seconds."""

    rows: np.ndarray[tuple[int], np.dtype[np.intp]]
    quantiles: Floats


def fit_predictor(
    features: pd.DataFrame, known: Histories, runs: pd.DataFrame, *, n_trees: int, seed: int
) -> tuple[Predictor, Tried]:
    """The predictor of finished runs, and how an earlier one did on the latest of them.

    features: (n, p) and known: of the rows of runs, in order of submission with runtime_s and, where the log has it,
    requested_runtime_s. Raises BadInput without a row."""
    runtime_s = runs["runtime_s"].to_numpy(dtype=float)
    least_s = max(LEAST_RUNTIME_S, LEAST_SHARE * float(np.median(runtime_s))) if len(runs) else LEAST_RUNTIME_S
    log_s = np.log(np.maximum(runtime_s, least_s))
    limits_s = runs["requested_runtime_s"].to_numpy(dtype=float) if "requested_runtime_s" in runs else None
    grace = None if limits_s is None else learn_grace(runtime_s, limits_s)
    cut = int(EARLY_SHARE * len(runs))
    by_features = [FOREST, BOOSTED] if cut >= LEAST_BOOSTED else [FOREST]
    names = [*by_features, *(part for part, (peers, _) in POOLED.items() if peers in known.log_s)]
    even = dict.fromkeys(names, 1 / len(names))

    def fitted(rows: slice, is_relative: bool) -> Predictor:
        usual = float(np.median(log_s[rows])) if len(log_s[rows]) else 0.0
        frame = features.iloc[rows]
        target = log_s[rows] - (_usual(frame, usual) if is_relative else 0.0)
        trees = {"n_trees": n_trees, "seed": seed}
        forest = fit_forest(frame, target, **trees)
        boosted = fit_boosted(frame, target, BOOSTED_LEVELS, **trees) if BOOSTED in names else None
        return Predictor(
            forest, boosted, even, is_relative, usual, Recalibration(), grace, tuple(features.columns), least_s
        )

    late = np.arange(cut, len(runs))
    if cut < 1 or len(late) < LEAST_TRIED:
        return fitted(slice(None), False), Tried(late[:0], np.zeros((0, N_LEVELS)))
    candidates = []
    for is_relative in (False, True):
        early = fitted(slice(0, cut), is_relative)
        told = early._parts(features.iloc[cut:], known.rows(slice(cut, None)), names)
        parts = [limited(part, features.iloc[cut:], grace) for part in told.values()]
        weights = best_weights(parts, runtime_s[cut:])
        pooled = mixture(parts, weights)
        crps = float(told_as(pooled).crps(runtime_s[cut:]).mean())
        candidates.append((crps, is_relative, weights, pooled))
    absolute, relative = candidates
    is_better = relative[0] < (1 - RELATIVE_GAIN) * absolute[0]
    _, is_relative, weights, pooled = relative if is_better else absolute
    named = dict(zip(names, map(float, weights), strict=True))
    model = replace(fitted(slice(None), is_relative), weights=named, recalibration=recalibration(pooled, log_s[cut:]))
    return model, Tried(late, pooled)


def told_as(quantiles: Floats) -> Empirical:
    """Quantiles at LEVELS in logs of seconds, (n, n_levels), as distributions in seconds."""
    n = len(quantiles)
    values = np.exp(np.clip(quantiles, *LOG_RANGE))
    unit = 10.0 ** (np.floor(np.log10(values)) - DIGITS)
    values = np.round(values / unit) * unit  # 20 s stays 20 s after its logarithm
    starts = np.arange(n + 1, dtype=np.int64) * N_LEVELS
    return Empirical(History(values.ravel(), np.full(values.size, 1 / N_LEVELS), starts), np.arange(n))


def _part(part: str, of_forest: Floats, known: Histories) -> Floats:
    """One part of the pool; without such runs what the forest says stands in."""
    if part == FOREST:
        return of_forest
    peers, most = POOLED[part]
    if peers not in known.log_s:
        return of_forest
    found = order_quantiles(known.log_s[peers][:, :most])
    is_unknown = np.isnan(found[:, 0])
    found[is_unknown] = of_forest[is_unknown]
    return found


def _usual(features: pd.DataFrame, usual_log_s: float) -> Floats:
    """What peers usually take, the closest that are known: (n,), log seconds."""
    found = np.full(len(features), np.nan)
    for name in RELATIVE:
        if name in features:
            found = np.where(np.isfinite(found), found, features[name].to_numpy(dtype=float))
    return np.where(np.isfinite(found), found, usual_log_s)
