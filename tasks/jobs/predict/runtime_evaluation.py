"""How well runtimes are predicted as distributions: the model beside what it must beat, each with the same care.

That is the runs of the job, and of its user with the same request; boosted quantiles; one shape for all jobs; a
random-forest regression; and the paper's shapes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.boosters import matrix
from tasks.jobs.distribution import (
    Binned,
    Empirical,
    Floats,
    Predicted,
    Tails,
    fit_tails,
    gather_history,
    outer_edges,
    without_zero_bin,
)
from tasks.jobs.normalisation import normalise
from tasks.jobs.params import EvaluateParams, Kind
from tasks.jobs.predict.peers import JOB, MOST_RUNS, USER_REQUEST, EarlierRuns, Histories, Ints, earlier_runs, histories
from tasks.jobs.predict.pool import LEVELS, limited, median_of, order_quantiles, recalibrated_in_time, recalibration
from tasks.jobs.predict.predictor import Predictor, Tried, fit_boosted, fit_predictor, told_as
from tasks.jobs.predict.preparation import Prepared
from tasks.jobs.scores import (
    Calibration,
    Coverage,
    Difference,
    GroupDistance,
    Pooled,
    Score,
    bootstrap_difference,
    calibration_of,
    compare_pooled,
    coverage_of,
    crps_of,
    ks_by_group,
    log_score_of,
    pit_values,
)
from tasks.jobs.shapes import ShapeSet

STAND_INS = 200  # quantiles that stand for the shape of all runs
MIN_LEAF = 3  # runs of a leaf of the random forest
LARGEST = 1e30  # that its trees are given; they count in 32 bits


def history_prediction(known: Histories, peers: str, stand_in: Floats) -> Floats:
    """For each row the (n + 1) rule over the last MOST_RUNS of its peers that had ended before it was submitted.

    So the baseline knows as much as the model does, up to the same moment. stand_in: (n, n_levels) quantiles in logs
    of seconds for rows without such runs; so is what is returned."""
    found = order_quantiles(known.log_s[peers][:, :MOST_RUNS])
    return np.where(np.isfinite(found), found, stand_in)


def global_prediction(earlier: EarlierRuns, ratios: Floats, medians_s: Floats) -> Empirical:
    """One shape for all jobs: quantiles of all ratios to the median, times the median of each row's job (n,)."""
    quantiles = np.quantile(ratios, (np.arange(STAND_INS) + 0.5) / STAND_INS)
    n = len(earlier.n)
    values = (medians_s[:, None] * quantiles).ravel()
    return Empirical(gather_history(values, np.repeat(np.arange(n), STAND_INS)), np.arange(n))


def forest_prediction(
    features: pd.DataFrame, runtime_s: Floats, asked: pd.DataFrame, *, n_trees: int, seed: int
) -> Empirical:
    """A random-forest regression of the runtime in seconds, as Zhu et al. extend Shao et al. 2019: one sure value.

    features, runtime_s: training rows; asked: (n, p). Its pooled runtimes are what Figure 8 compares."""
    from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped, unused-ignore]

    model = RandomForestRegressor(n_trees, min_samples_leaf=MIN_LEAF, max_features=1 / 3, n_jobs=1, random_state=seed)
    known, new = (np.clip(np.where(np.isinf(x), np.nan, x), -LARGEST, LARGEST) for x in map(matrix, (features, asked)))
    model.fit(known, runtime_s)
    told = np.maximum(np.asarray(model.predict(new), dtype=float), 0.0)
    return Empirical(gather_history(told, np.arange(len(told))), np.arange(len(told)))


def own_counts(earlier: EarlierRuns, bins: Ints, n_bins: int, *, most: int) -> Floats:
    """How many of the last `most` runs that each row knows lie in each bin: (n_rows, n_bins).

    bins: (n_past,) the bin of each run of earlier.past, in the order of its rows; -1: not counted."""
    ordered = bins[earlier.order]
    counted = [earlier.sums((ordered == one).astype(float)[:, None], window=most) for one in range(n_bins)]
    return np.hstack(counted)


Variant = Literal["hard", "soft", "leaning"]
VARIANTS: tuple[Variant, ...] = ("hard", "soft", "leaning")
PRIOR_RUNS = 20.0  # own runs that count as much as the shapes, in `leaning`


def predict_by_shapes(
    variant: Variant,
    shapes: ShapeSet,
    probabilities: Floats,
    medians_s: Floats,
    tails: Tails,
    *,
    own: Floats | None = None,
    empty_bin_prior: float,
) -> Binned:
    """Runtime distributions: a shape, or a mixture of shapes, stretched or shifted by the median of each run's job.

    probabilities: (n, k) of the shapes; medians_s: (n,) seconds, above 0 for ratios; own: (n, n_bins) counts of the
    job's earlier runs (leaning). hard: the most probable shape alone, as in the paper (5.2); soft: mixed by
    probability; leaning: (own + 20 · soft) / (n_own + 20)."""
    k, n_bins = shapes.centres.shape
    theta = (1 - empty_bin_prior) * shapes.centres + empty_bin_prior / n_bins
    weights = np.eye(k)[probabilities.argmax(axis=1)] if variant == "hard" else probabilities
    bins = shapes.bins
    edges = outer_edges(bins.low, bins.high, n_bins, bins.kind)
    if variant != "leaning" or own is None:
        if bins.kind == "ratio":
            edges, theta = without_zero_bin(edges, theta)
        return Binned(edges, theta, medians_s, bins.kind, tails, weights)
    masses = own + PRIOR_RUNS * (weights @ theta)
    masses = masses / masses.sum(axis=1, keepdims=True)
    if bins.kind == "ratio":
        edges, masses = without_zero_bin(edges, masses)
    return Binned(edges, masses, medians_s, bins.kind, tails)


Places = NDArray[np.intp]
EXPERTS_LEVELS = np.arange(1, 20) / 20  # of the baseline that an expert writes in an hour
EXPERTS = {
    "num_leaves": 31,
    "learning_rate": 0.06,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
}
MOST_OWN_RUNS = 500  # of the job, the last ones, count in the paper's shapes
FOREST_RUNS = 20_000  # that the random-forest regression learns from, the latest: minutes of CPU
TENTHS, LEAST_FOR_TENTHS = 10, 200  # of the test runs
GROUP_RUNS = 20  # test runs that a job needs for its own KS distance


@dataclass(frozen=True)
class Scored:
    """The measures of one predictor on the test runs, and on those of jobs never seen before (unseen).

    tenths: coverage in each tenth of the test runs, in order of time; none for few runs, and for the paper's shapes."""

    crps: Score
    log_score: Score
    coverage: Coverage
    calibration: Calibration
    ks_group: GroupDistance
    pooled: Pooled
    unseen_crps: Score
    pit: Floats
    crps_by_run: Floats
    tenths: list[float | None]


@dataclass(frozen=True)
class RuntimeEvaluation:
    """scored: by predictor; differences: of the model's CRPS from each other one's, by predictor; rows: the test runs
    that were scored, places in the log; predicted: the model's distributions of them; residuals: of all runs, the log
    of runtime over the median that a model had predicted that had not learnt from it, NaN where there was none; seen,
    quantiles: places of the runs that have one, those of `rows` last, and what was predicted of them, (n, n_levels)."""

    scored: dict[str, Scored]
    differences: dict[str, Difference]
    rows: Places
    predicted: Empirical
    model: Predictor
    residuals: Floats
    seen: Places
    quantiles: Floats


@dataclass(frozen=True)
class _Parts:
    """What all predictors of one evaluation share. known: of the test rows; tried: of the training; rows: as above."""

    prepared: Prepared
    training: Places
    rows: Places
    known: Histories
    model: Predictor
    tried: Tried

    @property
    def log_s(self) -> Floats:
        """Of all runs, in the logs that the model learnt from."""
        return np.asarray(np.log(np.maximum(self.prepared.runs["runtime_s"].to_numpy(dtype=float), self.model.least_s)))

    def in_time(self, quantiles: Floats, before: Floats, places: Places) -> Empirical:
        """Predictions of the test rows as a deployed model makes them: each block recalibrated by what had ended.

        quantiles: of the test rows; before: of the runs at `places`, known beforehand; (n, n_levels) each."""
        rows, runs = np.concatenate([places, self.rows]), self.prepared.runs.iloc[np.concatenate([places, self.rows])]
        told = recalibrated_in_time(
            np.concatenate([before, quantiles]),
            self.log_s[rows],
            runs["submitted_at"].to_numpy(),
            runs["ended_at"].to_numpy(),
            len(places),
        )
        return told_as(limited(told, self.prepared.features.iloc[self.rows], self.model.grace))


def evaluate_runtimes(
    prepared: Prepared, probabilities: Mapping[Kind, Floats], params: EvaluateParams
) -> RuntimeEvaluation:
    """Fit on D1 and D2, score D3. probabilities: (n, k) of the shapes of all runs, by kind."""
    runs, features = prepared.runs, model_features(prepared.features)
    training = np.flatnonzero(~prepared.is_part("D3"))[-params.max_training_runs :]
    rows = _sample(np.flatnonzero(prepared.is_part("D3")), params.max_test_runs)
    old, known = (histories(runs.iloc[places], runs) for places in (training, rows))
    model, tried = fit_predictor(
        features.iloc[training], old, runs.iloc[training], n_trees=params.predict.n_trees, seed=params.seed
    )
    parts = _Parts(prepared, training, rows, known, model, tried)
    quantiles, places = model.quantiles(features.iloc[rows], known), training[tried.rows]
    predictions: dict[str, Predicted] = {"model": parts.in_time(quantiles, tried.quantiles, places)}
    predictions |= _baselines(parts, features, params)
    earlier, medians_s = earlier_runs(runs.iloc[rows], runs), _medians(prepared, model, rows)
    ratios = normalise(
        runs["runtime_s"].to_numpy(dtype=float)[training], runs["median_s"].to_numpy(dtype=float)[training], "ratio"
    )
    predictions["global"] = global_prediction(earlier, ratios[np.isfinite(ratios)], medians_s)
    for kind, found in probabilities.items():
        predictions |= _by_shapes(prepared, kind, found[rows], medians_s, training, earlier, params)
    scored = {name: _score(told, prepared, rows, earlier, params) for name, told in predictions.items()}
    differences = _differences(scored, prepared, rows, params)
    seen, told = np.concatenate([places, rows]), np.concatenate([tried.quantiles, quantiles])
    residuals = np.full(len(runs), np.nan)
    residuals[seen] = parts.log_s[seen] - median_of(told)
    model = replace(model, recalibration=recalibration(told, parts.log_s[seen]))
    told = limited(told, prepared.features.iloc[seen], model.grace)
    return RuntimeEvaluation(scored, differences, rows, _model_of(predictions), model, residuals, seen, told)


def _model_of(predictions: Mapping[str, Predicted]) -> Empirical:
    """The model's own among the predictions."""
    model = predictions["model"]
    assert isinstance(model, Empirical)
    return model


def model_features(features: pd.DataFrame) -> pd.DataFrame:
    """The features that the predictor learns from: all but the evidence for shapes, which its own histories hold."""
    return features[[name for name in features if "shape_" not in str(name)]]


def _baselines(parts: _Parts, features: pd.DataFrame, params: EvaluateParams) -> dict[str, Predicted]:
    """The peers' own runs, boosted quantiles, and the random-forest regression."""
    training, rows, log_s = parts.training, parts.rows, parts.log_s
    all_runs = np.tile(np.quantile(log_s[training], LEVELS), (len(rows), 1))
    known = parts.known
    found: dict[str, Predicted] = {}
    for name, peers in (("history", JOB), ("user_request", USER_REQUEST)):
        if peers in known.log_s:
            told = history_prediction(known, peers, all_runs)
            found[name] = told_as(limited(told, features.iloc[rows], parts.model.grace))
    boosted = fit_boosted(
        features.iloc[training],
        log_s[training],
        EXPERTS_LEVELS,
        n_trees=params.baseline_trees,
        seed=params.seed,
        settings=EXPERTS,
    ).quantiles(features.iloc[rows])
    nobody = rows[:0]
    found["lightgbm"] = parts.in_time(boosted, boosted[:0], nobody)
    latest = training[-FOREST_RUNS:]
    runtime_s = parts.prepared.runs["runtime_s"].to_numpy(dtype=float)
    job_features = parts.prepared.job_features
    found["forest"] = forest_prediction(
        job_features.iloc[latest],
        runtime_s[latest],
        job_features.iloc[rows],
        n_trees=params.baseline_trees,
        seed=params.seed,
    )
    return found


def _by_shapes(
    prepared: Prepared,
    kind: Kind,
    probabilities: Floats,
    medians_s: Floats,
    training: NDArray[np.intp],
    earlier: EarlierRuns,
    params: EvaluateParams,
) -> dict[str, Predicted]:
    runs, shapes = prepared.runs, prepared.shapes[kind]
    values = normalise(runs["runtime_s"], runs["median_s"], kind)
    known = values[training][np.isfinite(values[training])]
    edges = outer_edges(shapes.bins.low, shapes.bins.high, shapes.bins.n_bins, kind)
    tails = fit_tails(known, edges, kind)
    own = own_counts(earlier, shapes.bins.index(values), shapes.bins.n_bins, most=MOST_OWN_RUNS)
    prior = params.predict.characterise.posterior.empty_bin_prior
    return {
        f"{variant}_{kind}": predict_by_shapes(
            variant, shapes, probabilities, medians_s, tails, own=own, empty_bin_prior=prior
        )
        for variant in VARIANTS
    }


def _medians(prepared: Prepared, model: Predictor, rows: NDArray[np.intp]) -> Floats:
    """The median of each run's job; for a job without one, and one of 0 s, what the model expects (n_rows,)."""
    medians_s = prepared.runs["median_s"].to_numpy(dtype=float)[rows]
    expected_s = np.exp(model.expected_log_s(prepared.features.iloc[rows]))
    return np.where(medians_s > 0, medians_s, expected_s)


def _score(
    told: Predicted, prepared: Prepared, rows: NDArray[np.intp], earlier: EarlierRuns, params: EvaluateParams
) -> Scored:
    runs = prepared.runs.iloc[rows]
    actual, keys = runs["runtime_s"].to_numpy(dtype=float), runs["group_key"].to_numpy()
    pit = pit_values(told, actual, np.random.default_rng(params.seed))
    unseen = np.flatnonzero(earlier.n == 0)
    parts = np.array_split(np.arange(len(rows)), TENTHS) if len(rows) >= LEAST_FOR_TENTHS else []
    is_cheap = isinstance(told, Empirical)
    return Scored(
        crps=crps_of(told, actual),
        log_score=log_score_of(told, actual),
        coverage=coverage_of(told, actual),
        calibration=calibration_of(pit),
        ks_group=ks_by_group(told, actual, keys, min_runs=GROUP_RUNS),
        pooled=compare_pooled(told, actual),
        unseen_crps=crps_of(told.rows(unseen), actual[unseen]),
        pit=pit,
        crps_by_run=told.crps(actual),
        tenths=[coverage_of(told.rows(part), actual[part]).share for part in parts if is_cheap],
    )


def _differences(
    scored: dict[str, Scored], prepared: Prepared, rows: NDArray[np.intp], params: EvaluateParams
) -> dict[str, Difference]:
    keys = prepared.runs["group_key"].to_numpy()[rows]
    model = scored["model"].crps_by_run
    return {
        name: bootstrap_difference(model, other.crps_by_run, keys, np.random.default_rng(params.seed))
        for name, other in scored.items()
        if name != "model"
    }


def _sample(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """At most `most` of them, evenly over time."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).round().astype(np.intp)]


def table_of(found: RuntimeEvaluation) -> pd.DataFrame:
    """One row a predictor: crps, log_score, coverage90, width90_s, ks_group, ks_pooled, pit_error, unseen_crps."""
    rows = [
        {
            "predictor": name,
            "crps": one.crps.value,
            "log_score": one.log_score.value,
            "coverage90": one.coverage.share,
            "width90_s": one.coverage.width_s,
            "ks_group": one.ks_group.value,
            "ks_pooled": one.pooled.ks,
            "mae_s": one.pooled.mae_s,
            "pit_error": one.calibration.error,
            "unseen_crps": one.unseen_crps.value,
        }
        for name, one in found.scored.items()
    ]
    return pd.DataFrame(rows)
