"""How long a run will take, as a distribution, from what is known when it is submitted.

P(runtime) = w_0 boosted quantiles(features) + w_1 job's last 4 runs + w_2 its last 30 + w_3 its last 200
+ w_4 its user's last 10 with the same request + w_5 the last 50 of all + w_6 all that it learnt from, recalibrated by
the last runs that the model had not learnt from, and cut off at the time limit where the log shows that limits are
kept. The weights are those with the least CRPS on the latest part of the training runs, by trees of the earlier part
(`mixture.best_weights_by_support`), and others for jobs with few and with many runs: history counts as much as it
deserves, all in a log where nothing else tells more, nothing where the features say it better, and all runs where jobs
are alike. At both ends the parts' quantiles are half averaged, not mixed, where that foretold the latest better."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.boosters import booster_from, matrix, train_boosters
from tasks.jobs.distribution import Empirical, Floats, even_steps
from tasks.jobs.predict.features import OWN
from tasks.jobs.predict.mixture import (
    CALIBRATION_RUNS,
    LEVELS,
    LOG_RANGE,
    N_CLASSES,
    N_LEVELS,
    SUPPORT,
    Recalibration,
    beside_one_run,
    best_weights_by_support,
    learn_grace,
    limited,
    mixture_by_support,
    order_quantiles,
    recalibration,
)
from tasks.jobs.predict.peers import JOB, LEAST_RUNTIME_S, LOG, MOST_OF_JOB, USER_REQUEST, Histories

BOOSTED, ALL_RUNS = "boosted", "all runs"
POOLED: dict[str, tuple[str, int]] = {  # name of a part: its peers, and how many of their last runs
    "job, last 4": (JOB, 4),
    "job, last 30": (JOB, 30),
    "job": (JOB, MOST_OF_JOB),
    "user and request": (USER_REQUEST, 10),
    "log": (LOG, 50),
}
RELATIVE = ("input_usual", "job_median10", "user_request_median10", "user_median10", "log_median")
RELATIVE_GAIN = 0.02  # of CRPS, for trees to be relative: they can go beyond all runs
ONE_ENOUGH_GAIN = 0.02  # of CRPS, for one run to be enough: where jobs hardly vary
LEAST_SHARE = 1e-3  # of the median runtime: shorter runs count as this long
ENDS = (0.0, 0.5)  # the shares of averaged quantiles at both ends that are tried
EARLY_SHARES = (0.6, 0.4, 0.2)  # of the training runs: what an earlier model learns from, tried on those that follow
BOOSTED_LEVELS = np.array([0.05, 0.15, 0.25, 0.4, 0.5, 0.6, 0.75, 0.85, 0.95])
SETTINGS = {
    "num_leaves": 10,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
}
OF_OWN = SETTINGS | {"min_data_in_leaf": 5}  # where columns of one's own tell the runtime: often few runs are alike
TIMES_OF_OWN = 3  # as many trees there
LOW_LEVELS, NEAR_LEAST = 45, 1.05  # quantiles below the median, and what counts as the least
DIGITS = 11  # of a predicted time behind the first
FIRST_EXPONENT, LAST_EXPONENT = (int(one) for one in np.frexp(np.exp(LOG_RANGE))[1])  # of 2, for any predicted time
SCALES = 10.0 ** (DIGITS - np.floor(np.log10(0.5) + np.arange(FIRST_EXPONENT, LAST_EXPONENT + 1) * np.log10(2)))
TOGETHER = 2_000  # submissions asked at once: their quantiles, 2 MB a part, stay in the cache
LEAST_TRIED = 20  # runs; with fewer all parts count the same
PLAIN = ("is_relative", "is_one_enough", "usual_log_s", "grace", "columns", "least_s", "ends")  # in MAIN as they are
MAIN, TREES, FORMAT = "predictor.json", "boosted.json", 4


@dataclass(frozen=True)
class Boosted:
    """Gradient-boosted quantiles, one LightGBM model for each of some levels: levels: (n_models,) ascending, at least
    two; boosters: lightgbm.Booster of each."""

    levels: Floats
    boosters: tuple[Any, ...]

    def quantiles(self, features: pd.DataFrame) -> Floats:
        """Quantiles at LEVELS: (n, n_levels). features: (n, p), in the order of training.

        Those of the models are sorted (Chernozhukov et al. 2010) and interpolated; the ends go on as the last two."""
        if features.empty:
            return np.zeros((0, N_LEVELS))
        rows = matrix(features)
        predicted = np.sort(
            np.column_stack([booster.predict(rows, num_threads=1) for booster in self.boosters]), axis=1
        )
        return np.sort(predicted @ self.interpolation, axis=1)

    @property
    def interpolation(self) -> Floats:
        """How much each model's quantile counts at each of LEVELS: (n_models, n_levels), columns sum to 1."""
        place = np.clip(np.searchsorted(self.levels, LEVELS), 1, len(self.levels) - 1)
        share = (LEVELS - self.levels[place - 1]) / (self.levels[place] - self.levels[place - 1])
        counts, columns = np.zeros((len(self.levels), N_LEVELS)), np.arange(N_LEVELS)
        counts[place - 1, columns], counts[place, columns] = 1 - share, share
        return counts

    def leaves(self, features: pd.DataFrame) -> NDArray[np.int32]:
        """The leaf of each tree of the middle model that each row falls into: (n, n_trees)."""
        middle = self.boosters[len(self.boosters) // 2]
        if features.empty:
            return np.zeros((0, middle.num_trees()), dtype=np.int32)
        leaves = middle.predict(matrix(features), pred_leaf=True, num_threads=1)
        return np.asarray(leaves, dtype=np.int32).reshape(len(features), -1)

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        models = dict(zip(self.levels.tolist(), (booster.model_to_string() for booster in self.boosters), strict=True))
        (folder / TREES).write_text(json.dumps(models), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, n_features: int) -> Self:
        """What save wrote. Raises BadInput, OSError, ValueError or AttributeError for anything else."""
        models = json.loads((folder / TREES).read_text(encoding="utf-8"))
        levels = np.array([float(level) for level in models])
        if len(levels) < 2 or not (np.diff(levels, prepend=0.0, append=1.0) > 0).all():
            raise ValueError(f"{TREES}: levels {list(models)}; expected some that ascend between 0 and 1")
        return cls(levels, tuple(booster_from(text, n_features) for text in models.values()))


def fit_boosted(
    features: pd.DataFrame,
    values: Floats,
    levels: NDArray[np.float64] = BOOSTED_LEVELS,
    *,
    n_trees: int,
    seed: int,
    settings: Mapping[str, Any] = SETTINGS,
) -> Boosted:
    """Boosted quantiles of values, (n,), such as logs of runtimes; features: (n, p). Raises BadInput without a row."""
    level_settings = [{**settings, "objective": "quantile", "alpha": level} for level in levels]
    return Boosted(np.asarray(levels), tuple(train_boosters(features, values, level_settings, n_trees, seed)))


@dataclass(frozen=True)
class Predictor:
    """weights: of the parts of the pool, for each class of support, of which they sum to 1; ends: the share of their
    averaged quantiles at both ends; is_relative: the trees are of the runtime over what peers usually take;
    is_one_enough: after one run alone a part says that the next takes as long, not shorter or longer as the trees say;
    usual_log_s: stands in for that without peers; typical_log_s: (n_levels,) quantiles of all runs that it learnt from;
    recalibration: of the pool; grace: of time limits, None where they are not kept; columns: features in their order;
    least_s: shorter runs count as this long."""

    boosted: Boosted
    weights: Mapping[str, tuple[float, ...]]
    is_relative: bool
    is_one_enough: bool
    usual_log_s: float
    typical_log_s: Floats
    recalibration: Recalibration
    grace: float | None
    columns: tuple[str, ...]
    least_s: float
    ends: float = 0.0

    def predict(self, features: pd.DataFrame, known: Histories, *, shift: Floats | None = None) -> Empirical:
        """Distributions for the rows of features, in seconds. known: their Histories; shift: (n,) added to log seconds.

        Each is held as N_LEVELS values of the same weight, the quantiles at LEVELS."""
        quantiles_s = np.empty((len(features), N_LEVELS))
        for first in range(0, len(features), TOGETHER):
            rows = slice(first, first + TOGETHER)
            block = features.iloc[rows]
            quantiles = self.recalibration.applied(self.quantiles(block, known.rows(rows)))
            if shift is not None:
                quantiles += shift[rows, None]
            quantiles_s[rows] = _seconds(limited(quantiles, block, self.grace), self.least_s)
        return even_steps(quantiles_s)

    def quantiles(self, features: pd.DataFrame, known: Histories) -> Floats:
        """Quantiles of the pool at LEVELS in logs of seconds, before recalibration and limit: (n, n_levels)."""
        weights = {part: of_classes for part, of_classes in self.weights.items() if max(of_classes) > 0}
        parts = self.parts(features, known, list(weights))
        return mixture_by_support(parts, np.array(list(weights.values())).T, support_of(known), self.ends)

    def parts(self, features: pd.DataFrame, known: Histories, names: list[str]) -> list[Floats]:
        """What these parts of the pool say, (n, n_levels) each; without such peers what the trees say stands in."""
        of_trees = self.boosted.quantiles(features[list(self.columns)]) + self._base(features)[:, None]
        least = np.log(self.least_s)  # many runs may count as just this long: all parts say so in the same number
        of_trees = np.where(of_trees <= least + np.log(NEAR_LEAST), least, of_trees)
        predictions = []
        for part in names:
            peers, most = POOLED.get(part, (part, 0))
            if peers in known.log_s:
                latest = np.maximum(known.log_s[peers][:, :most], least)
                n_runs = np.isfinite(latest).sum(axis=1)
                quantiles = np.where(n_runs[:, None] > 0, order_quantiles(latest), of_trees)
                if not self.is_one_enough:
                    quantiles[n_runs == 1] = beside_one_run(quantiles[n_runs == 1], of_trees[n_runs == 1])
                predictions.append(quantiles)
            else:
                predictions.append(np.tile(self.typical_log_s, (len(features), 1)) if part == ALL_RUNS else of_trees)
        return predictions

    def expected_log_s(self, features: pd.DataFrame) -> Floats:
        """The mean log of runtime in seconds that the trees expect: (n,)."""
        return np.asarray(self.boosted.quantiles(features[list(self.columns)]).mean(axis=1) + self._base(features))

    def _base(self, features: pd.DataFrame) -> Floats:
        return _usual(features, self.usual_log_s) if self.is_relative else np.zeros(len(features))

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        self.boosted.save(folder)
        main = {
            "format": FORMAT,
            **{name: getattr(self, name) for name in PLAIN},
            "weights": dict(self.weights),
            "typical_log_s": self.typical_log_s.tolist(),
            "levels": self.recalibration.levels.tolist(),
            "moved": self.recalibration.moved.tolist(),
        }
        (folder / MAIN).write_text(json.dumps(main, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What save wrote. Raises BadInput, OSError, ValueError, KeyError or TypeError for anything else."""
        main = json.loads((folder / MAIN).read_text(encoding="utf-8"))
        if "format" not in main or main["format"] != FORMAT:
            raise ValueError(f"{MAIN}: not of format {FORMAT}")
        columns = tuple(map(str, main["columns"]))
        grace = None if main["grace"] is None else float(main["grace"])
        weights = {str(part): tuple(map(float, of_classes)) for part, of_classes in main["weights"].items()}
        if unknown := [part for part in weights if part not in (BOOSTED, *POOLED, ALL_RUNS)]:
            raise ValueError(f"no part {unknown[0]!r}")
        table = np.array(list(weights.values()))  # (n_parts, n_classes)
        if table.shape != (len(weights), N_CLASSES) or table.min() < 0 or not np.allclose(table.sum(axis=0), 1):
            raise ValueError(f"weights {main['weights']}; expected {N_CLASSES} of each part, at least 0, that sum to 1")
        typical, levels, moved = (np.array(main[name], dtype=float) for name in ("typical_log_s", "levels", "moved"))
        shapes = {array.shape for array in (typical, levels, moved)}
        if shapes != {(N_LEVELS,)} or (abs(levels - 0.5) > 0.5).any():
            raise ValueError(f"typical_log_s, levels or moved; expected {N_LEVELS} numbers, levels from 0 to 1")
        ends = float(main["ends"])
        if not 0 <= ends <= 1:
            raise ValueError(f"ends {ends:g}; expected a share from 0 to 1")
        return cls(
            Boosted.load(folder, len(columns)),
            weights,
            bool(main["is_relative"]),
            bool(main["is_one_enough"]),
            float(main["usual_log_s"]),
            typical,
            Recalibration(levels, moved),
            grace,
            columns,
            float(main["least_s"]),
            ends,
        )


def support_of(known: Histories) -> NDArray[np.intp]:
    """The class of each of n submissions by how many runs of its job it knows: (n,), 0 for none."""
    return np.asarray(np.digitize(np.isfinite(known.log_s[JOB]).sum(axis=1), SUPPORT))


@dataclass(frozen=True)
class EarlierPredictions:
    """What an earlier model said of the training runs that it had not learnt from, the latest.

    rows: their places among the training runs, ascending; quantiles: (m, n_levels) of the pool, log seconds."""

    rows: np.ndarray[tuple[int], np.dtype[np.intp]]
    quantiles: Floats


def fit_predictor(
    features: pd.DataFrame, known: Histories, runs: pd.DataFrame, *, n_trees: int, seed: int
) -> tuple[Predictor, EarlierPredictions]:
    """The predictor of finished runs, and how an earlier one did on the latest of them.

    features: (n, p) and known: of the rows of runs, in order of submission with runtime_s and, where the log has it,
    requested_runtime_s. Raises BadInput without a row."""
    runtime_s = runs["runtime_s"].to_numpy(dtype=float)
    least_s = max(LEAST_RUNTIME_S, LEAST_SHARE * float(np.median(runtime_s))) if len(runs) else LEAST_RUNTIME_S
    log_s = np.log(np.maximum(runtime_s, least_s))
    limits_s = runs["requested_runtime_s"].to_numpy(dtype=float) if "requested_runtime_s" in runs else None
    grace = None if limits_s is None else learn_grace(runtime_s, limits_s)
    names = [BOOSTED, *(part for part, (of, _) in POOLED.items() if of in known.log_s), ALL_RUNS]
    peers = names[1:]  # trees of few runs know less than these
    even = dict.fromkeys(peers, (1 / len(peers),) * N_CLASSES)
    has_own = any(str(name).startswith(OWN) for name in features)
    settings, times = (OF_OWN, TIMES_OF_OWN) if has_own else (SETTINGS, 1)

    def fitted(rows: slice, *, is_relative: bool, is_one_enough: bool = False) -> Predictor:
        usual = float(np.median(log_s[rows])) if len(log_s[rows]) else 0.0
        frame = features.iloc[rows]
        target = log_s[rows] - (_usual(frame, usual) if is_relative else 0.0)
        boosted = fit_boosted(frame, target, n_trees=times * n_trees, seed=seed, settings=settings)
        columns, typical = tuple(features.columns), np.quantile(log_s[rows], LEVELS)
        chosen, unmoved = (is_relative, is_one_enough), Recalibration()
        return Predictor(boosted, even, *chosen, usual, typical, unmoved, grace, columns, least_s)

    cuts = [len(runs)]
    for share in EARLY_SHARES:
        if len(runs) - cuts[0] < CALIBRATION_RUNS:
            cuts.insert(0, int(share * len(runs)))
    cut, stretches = cuts[0], [slice(*ends) for ends in pairwise(cuts)]
    late, later = np.arange(cut, len(runs)), features.iloc[cut:]
    if cut < 1 or len(late) < LEAST_TRIED:
        return fitted(slice(None), is_relative=False), EarlierPredictions(late[:0], np.zeros((0, N_LEVELS)))
    support, candidates = support_of(known.rows(slice(cut, None))), []
    for is_relative in (False, True):
        earlier = [(fitted(slice(0, rows.start), is_relative=is_relative), rows) for rows in stretches]
        for is_one_enough in (False, True):
            predictions = [
                replace(model, is_one_enough=is_one_enough).parts(features.iloc[rows], known.rows(rows), names)
                for model, rows in earlier
            ]
            parts = [limited(np.concatenate(part), later, grace) for part in zip(*predictions, strict=True)]
            weights = best_weights_by_support(parts, runtime_s[cut:], support)
            crps = empirical_of(mixture_by_support(parts, weights, support)).crps(runtime_s[cut:]).mean()
            least = (1 - RELATIVE_GAIN) ** is_relative * (1 - ONE_ENOUGH_GAIN) ** is_one_enough
            candidates.append((float(crps) / least, is_relative, is_one_enough, weights, parts))
    _, is_relative, is_one_enough, weights, parts = min(candidates, key=lambda candidate: candidate[0])
    tried = []
    for ends in ENDS:
        pooled = mixture_by_support(parts, weights, support, ends)
        moved = recalibration(pooled, log_s[cut:])
        crps = float(empirical_of(limited(moved.applied(pooled), later, grace)).crps(runtime_s[cut:]).mean())
        tried.append((crps, ends, pooled, moved))
    _, ends, pooled, moved = min(tried, key=lambda trial: trial[0])
    named = {part: tuple(map(float, of_classes)) for part, of_classes in zip(names, weights.T, strict=True)}
    model = fitted(slice(None), is_relative=is_relative, is_one_enough=is_one_enough)
    model = replace(model, weights=named, ends=ends, recalibration=moved)
    return model, EarlierPredictions(late, pooled)


def empirical_of(quantiles: Floats, least_s: float = 0.0) -> Empirical:
    """Quantiles at LEVELS in logs of seconds, (n, n_levels), as distributions in seconds.

    Of runs that count as least_s long some take 0 s: low quantiles there are 0, so that intervals hold these."""
    return even_steps(_seconds(quantiles, least_s))


def _seconds(quantiles: Floats, least_s: float) -> Floats:
    values = to_digits(np.exp(np.clip(quantiles, *LOG_RANGE)))
    low = values[:, :LOW_LEVELS]
    low[low <= NEAR_LEAST * least_s] = 0.0
    return values


def to_digits(times_s: Floats) -> Floats:
    """Seconds with as many digits as predicted ones have: 20 s stays 20 s after its logarithm."""
    scale = SCALES[np.clip(np.frexp(times_s)[1] - FIRST_EXPONENT, 0, len(SCALES) - 1)]
    return np.asarray(np.round(times_s * scale) / scale)


def _usual(features: pd.DataFrame, usual_log_s: float) -> Floats:
    """What peers usually take, the closest that are known: (n,), log seconds."""
    usual = np.full(len(features), np.nan)
    for name in RELATIVE:
        if name in features:
            usual = np.where(np.isfinite(usual), usual, features[name].to_numpy(dtype=float))
    return np.where(np.isfinite(usual), usual, usual_log_s)
