"""How well runtimes are predicted as distributions: the model beside history, forest, one shape, and the paper's."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.binned import (
    fit_tails,
    outer_edges,
)
from tasks.jobs.distribution import Floats, Predicted
from tasks.jobs.normalisation import normalise
from tasks.jobs.predict import baselines
from tasks.jobs.predict.conditional import Conditional, fit_conditional
from tasks.jobs.predict.evaluation_params import EvaluateParams
from tasks.jobs.predict.features_earlier import EarlierRuns, earlier_runs
from tasks.jobs.predict.in_time import calibrated_at_end, predict_in_time
from tasks.jobs.predict.own_runs import own_counts
from tasks.jobs.predict.preparation import Prepared
from tasks.jobs.predict.shape_predictions import VARIANTS, predict_by_shapes
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
from tasks.jobs.shape_params import Kind


@dataclass(frozen=True)
class Scored:
    """The measures of one predictor on the test runs, and on those of jobs never seen before (unseen)."""

    crps: Score
    log_score: Score
    coverage: Coverage
    calibration: Calibration
    ks_group: GroupDistance
    pooled: Pooled
    unseen_crps: Score
    pit: Floats
    crps_by_run: Floats


@dataclass(frozen=True)
class RuntimeEvaluation:
    """scored: by predictor; differences: of the model's CRPS from each other one's, by predictor; rows: the test runs
    that were scored, places in the log; predicted: the model's distributions of them."""

    scored: dict[str, Scored]
    differences: dict[str, Difference]
    rows: NDArray[np.intp]
    predicted: Predicted
    model: Conditional
    bins: NDArray[np.int64]


def evaluate_runtimes(
    prepared: Prepared, probabilities: Mapping[Kind, Floats], params: EvaluateParams
) -> RuntimeEvaluation:
    """Fit on D1 and D2, score D3. probabilities: (n, k) of the shapes of all runs, by kind."""
    runs, features = prepared.runs, prepared.features
    runtime_s = runs["runtime_s"].to_numpy(dtype=float)
    training = np.flatnonzero(~prepared.is_part("D3"))[-params.max_training_runs :]
    rows = _sample(np.flatnonzero(prepared.is_part("D3")), params.max_test_runs)
    model, seen = fit_conditional(
        features.iloc[training].reset_index(drop=True),
        runs.iloc[training].reset_index(drop=True),
        params.predict.predictor,
    )
    bins = model.residual_bins(features, runtime_s)
    bins[training] = seen  # what the model expects of its own training runs is too good
    earlier = earlier_runs(runs.iloc[rows], runs)
    predictor, first_new = params.predict.predictor, int(training[-1]) + 1
    most = predictor.lean.most_runs
    predictions: dict[str, Predicted] = {
        "model": predict_in_time(model, features, runs, bins, rows, first_new, predictor)
    }
    predictions["history"] = baselines.history_prediction(earlier, runtime_s, runtime_s[training], most=most)
    predictions["forest"] = baselines.forest_prediction(
        features.iloc[training[-params.max_rival_runs :]],
        runtime_s[training[-params.max_rival_runs :]],
        features.iloc[rows],
        n_trees=params.forest_trees,
        min_leaf=params.forest_min_leaf,
        seed=params.seed,
    )
    medians_s = _medians(prepared, model, rows)
    ratios = normalise(runtime_s[training], runs["median_s"].to_numpy(dtype=float)[training], "ratio")
    predictions["global"] = baselines.global_prediction(earlier, ratios[np.isfinite(ratios)], medians_s)
    for kind, found in probabilities.items():
        predictions |= _by_shapes(prepared, kind, found[rows], medians_s, training, earlier, params)
    scored = {name: _score(told, prepared, rows, earlier, params) for name, told in predictions.items()}
    differences = _differences(scored, prepared, rows, params)
    model = calibrated_at_end(model, features, runs, bins, first_new, predictor)
    return RuntimeEvaluation(scored, differences, rows, predictions["model"], model, bins)


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
    own = own_counts(
        earlier, shapes.bins.index(values), shapes.bins.n_bins, most=params.predict.predictor.lean.most_runs
    )
    prior = params.predict.characterise.posterior.empty_bin_prior
    return {
        f"{variant}_{kind}": predict_by_shapes(
            variant, shapes, probabilities, medians_s, tails, own=own, empty_bin_prior=prior
        )
        for variant in VARIANTS
    }


def _medians(prepared: Prepared, model: Conditional, rows: NDArray[np.intp]) -> Floats:
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
    return Scored(
        crps=crps_of(told, actual),
        log_score=log_score_of(told, actual),
        coverage=coverage_of(told, actual),
        calibration=calibration_of(pit),
        ks_group=ks_by_group(told, actual, keys, min_runs=params.min_group_runs),
        pooled=compare_pooled(told, actual),
        unseen_crps=crps_of(told.rows(unseen), actual[unseen]),
        pit=pit,
        crps_by_run=told.crps(actual),
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
