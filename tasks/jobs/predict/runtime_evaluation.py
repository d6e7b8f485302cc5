"""How well runtimes are predicted as distributions: the model beside what it must beat, each with the same care.

That is the runs of the job, and of its user with the same request; boosted quantiles; these and the job's runs
stacked; one shape for all jobs; and the paper's shapes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.distribution import Empirical, Floats, even_steps
from tasks.jobs.normalisation import normalise, quantiles
from tasks.jobs.params import EvaluateParams, Kind
from tasks.jobs.predict.mixture import (
    LEVELS,
    best_weights_by_support,
    limited,
    median_of,
    mixture_by_support,
    order_quantiles,
    recalibrated_in_time,
    recalibration,
)
from tasks.jobs.predict.peers import (
    JOB,
    MOST_RUNS,
    OF_THE_POOL,
    USER_REQUEST,
    EarlierRuns,
    Histories,
    earlier_runs,
    histories,
    peers_of,
)
from tasks.jobs.predict.predictor import (
    EARLY_SHARES,
    LEAST_TRIED,
    Predictor,
    empirical_of,
    fit_boosted,
    fit_predictor,
    support_of,
    to_digits,
)
from tasks.jobs.predict.preparation import PreparedLog
from tasks.jobs.scores import (
    Difference,
    GroupDistance,
    bootstrap_difference,
    calibration_error,
    coverage_of,
    ks_by_group,
    ks_pooled,
    pit_values,
)
from tasks.jobs.shapes import ShapeSet, log_shapes

STAND_INS = 200  # quantiles that stand for a shape


def history_prediction(known: Histories, peers: str, stand_in: Floats) -> Floats:
    """For each row the (n + 1) rule over the last MOST_RUNS of its peers that had ended before it was submitted.

    So the baseline knows as much as the model does, up to the same moment. stand_in: (n, n_levels) quantiles in logs
    of seconds for rows without such runs; so is what is returned."""
    peer_quantiles = order_quantiles(known.log_s[peers][:, :MOST_RUNS])
    return np.where(np.isfinite(peer_quantiles), peer_quantiles, stand_in)


def global_prediction(ratios: Floats, medians_s: Floats) -> Empirical:
    """One shape for all jobs: quantiles of all ratios to the median, times the median of each row's job (n,)."""
    return even_steps(medians_s[:, None] * np.quantile(ratios, (np.arange(STAND_INS) + 0.5) / STAND_INS))


def predict_by_shapes(shapes: ShapeSet, probabilities: Floats, medians_s: Floats, excess: float) -> Empirical:
    """The paper's prediction: each run's most probable shape, stretched or shifted by the median of its job (5.2).

    probabilities: (n, k) of the shapes; medians_s: (n,) seconds, above 0 for ratios; excess: how far outliers lie
    beyond the upper end of the bins in the mean, in normalised units."""
    theta = np.exp(log_shapes(shapes.centres))
    levels = (np.arange(STAND_INS) + 0.5) / STAND_INS
    values = quantiles(theta, shapes.bins, levels)  # (k, STAND_INS)
    values -= excess * np.log(np.minimum((1 - levels) / np.maximum(theta[:, -1:], np.finfo(float).tiny), 1.0))
    normalised, medians_s = values[probabilities.argmax(axis=1)], medians_s[:, None]
    return even_steps(
        medians_s * normalised if shapes.bins.kind == "ratio" else np.maximum(medians_s + normalised, 0.0)
    )


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
TENTHS, LEAST_FOR_TENTHS = 10, 200  # of the test runs


@dataclass(frozen=True)
class Scored:
    """The measures of one predictor on the test runs, and on the n_unseen ones of jobs never seen before.

    measures: as the keys `predict.<measure>` of the figures; unseen_crps: None without such runs; tenths: coverage in
    each tenth of the test runs, in order of time; none for few runs."""

    measures: dict[str, float]
    ks_group: GroupDistance
    n_unseen: int
    unseen_crps: float | None
    pit: Floats
    crps_by_run: Floats
    tenths: list[float]


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
    """What all predictors of one evaluation share. old: of the training; known: of the test runs, `rows`."""

    prepared: PreparedLog
    training: Places
    rows: Places
    old: Histories
    known: Histories
    model: Predictor

    @property
    def log_s(self) -> Floats:
        """Of all runs, in the logs that the model learnt from."""
        return np.asarray(np.log(np.maximum(self.prepared.runs["runtime_s"].to_numpy(dtype=float), self.model.least_s)))

    def in_time(self, quantiles: Floats, before: Floats, places: Places) -> Empirical:
        """Predictions of the test rows as a deployed model makes them: each block recalibrated by what had ended.

        quantiles: of the test rows; before: of the runs at `places`, known beforehand; (n, n_levels) each."""
        rows, runs = np.concatenate([places, self.rows]), self.prepared.runs.iloc[np.concatenate([places, self.rows])]
        log_s = recalibrated_in_time(
            np.concatenate([before, quantiles]),
            self.log_s[rows],
            runs["submitted_at"].to_numpy(),
            runs["ended_at"].to_numpy(),
            len(places),
        )
        return empirical_of(
            limited(log_s, self.prepared.features.iloc[self.rows], self.model.grace), self.model.least_s
        )


def evaluate_runtimes(
    prepared: PreparedLog, probabilities: Mapping[Kind, Floats], params: EvaluateParams
) -> RuntimeEvaluation:
    """Fit on D1 and D2, score D3. probabilities: (n, k) of the shapes of all runs, by kind."""
    runs = prepared.runs
    # all but the evidence for shapes, which the predictor's own histories hold
    features = prepared.features[[name for name in prepared.features if "shape_" not in str(name)]]
    training = np.flatnonzero(~prepared.is_part("D3"))[-params.max_training_runs :]
    rows = np.flatnonzero(prepared.is_part("D3"))
    if len(rows) > params.max_test_runs:  # evenly over time
        rows = rows[np.linspace(0, len(rows) - 1, params.max_test_runs).round().astype(np.intp)]
    old, known = (histories(peers_of(runs.iloc[places], runs, OF_THE_POOL)) for places in (training, rows))
    model, tried = fit_predictor(
        features.iloc[training], old, runs.iloc[training], n_trees=params.predict.n_trees, seed=params.seed
    )
    parts = _Parts(prepared, training, rows, old, known, model)
    quantiles, places = model.quantiles(features.iloc[rows], known), training[tried.rows]
    predictions: dict[str, Empirical] = {"model": parts.in_time(quantiles, tried.quantiles, places)}
    predictions |= _baselines(parts, features, params)
    earlier, medians_s = earlier_runs(runs.iloc[rows], runs), runs["median_s"].to_numpy(dtype=float)[rows]
    # for a job without a median, or one of 0 s, what the model expects
    medians_s = np.where(medians_s > 0, medians_s, np.exp(model.expected_log_s(prepared.features.iloc[rows])))
    ratios = normalise(runs["runtime_s"], runs["median_s"], "ratio")[training]
    if np.isfinite(ratios).any():
        predictions["global"] = global_prediction(ratios[np.isfinite(ratios)], medians_s)
    for kind, shape_probabilities in probabilities.items():
        predictions[f"paper_{kind}"] = _by_shapes(prepared, kind, shape_probabilities[rows], medians_s, training)
    scored = {name: _score(predicted, prepared, rows, earlier, params) for name, predicted in predictions.items()}
    keys = runs["group_key"].to_numpy()[rows]
    crps_s = {name: one.crps_by_run for name, one in scored.items()}
    differences = {
        name: bootstrap_difference(crps_s["model"], other_s, keys, np.random.default_rng(params.seed))
        for name, other_s in crps_s.items()
        if name != "model"
    }
    seen, predicted = np.concatenate([places, rows]), np.concatenate([tried.quantiles, quantiles])
    residuals = np.full(len(runs), np.nan)
    residuals[seen] = parts.log_s[seen] - median_of(predicted)
    model = replace(model, recalibration=recalibration(predicted, parts.log_s[seen]))
    predicted = limited(predicted, prepared.features.iloc[seen], model.grace)
    return RuntimeEvaluation(scored, differences, rows, predictions["model"], model, residuals, seen, predicted)


def _baselines(parts: _Parts, features: pd.DataFrame, params: EvaluateParams) -> dict[str, Empirical]:
    """The peers' own runs, boosted quantiles, and these and the job's runs stacked."""
    rows, log_s = parts.rows, parts.log_s
    all_runs = np.tile(np.quantile(log_s[parts.training], LEVELS), (len(rows), 1))
    known = parts.known
    predictions: dict[str, Empirical] = {}
    for name, peers in (("history", JOB), ("user_request", USER_REQUEST)):
        if peers in known.log_s:
            log_times = history_prediction(known, peers, all_runs)
            predictions[name] = empirical_of(
                limited(log_times, features.iloc[rows], parts.model.grace), parts.model.least_s
            )

    def boosted(learnt: Places, asked: Places) -> Floats:
        trees = fit_boosted(
            features.iloc[learnt],
            log_s[learnt],
            EXPERTS_LEVELS,
            n_trees=params.baseline_trees,
            seed=params.seed,
            settings=EXPERTS,
        )
        return trees.quantiles(features.iloc[asked])

    of_trees, nobody = boosted(parts.training, rows), rows[:0]
    predictions["lightgbm"] = parts.in_time(of_trees, of_trees[:0], nobody)
    cut = int(EARLY_SHARES[0] * len(parts.training))
    early, late = parts.training[:cut], parts.training[cut:]
    if cut and len(late) >= LEAST_TRIED:
        predictions["stacked"] = _stacked(parts, late, boosted(early, late), of_trees)
    return predictions


def _stacked(parts: _Parts, late: Places, tried: Floats, of_trees: Floats) -> Empirical:
    """Boosted quantiles and the job's own runs, mixed by how many runs the job has.

    late: the training runs that the weights are chosen on; tried: what trees that had not learnt from these predict of
    them; of_trees: what trees of all training predict of the test rows; (n, n_levels) each."""
    old, known = parts.old.rows(slice(-len(late), None)), parts.known
    support = support_of(old)
    parts_late = [tried, history_prediction(old, JOB, tried)]
    weights = best_weights_by_support(parts_late, np.exp(parts.log_s[late]), support)
    before = mixture_by_support(parts_late, weights, support)
    parts_test = [of_trees, history_prediction(known, JOB, of_trees)]
    return parts.in_time(mixture_by_support(parts_test, weights, support_of(known)), before, late)


def _by_shapes(
    prepared: PreparedLog, kind: Kind, probabilities: Floats, medians_s: Floats, training: Places
) -> Empirical:
    """The paper's prediction of the test rows, by one normalisation."""
    runs, shapes = prepared.runs, prepared.shapes[kind]
    values = normalise(runs["runtime_s"], runs["median_s"], kind)[training]
    above = values[np.isfinite(values) & (values >= shapes.bins.high)] - shapes.bins.high
    excess = float(above.mean()) if len(above) else shapes.bins.width
    return predict_by_shapes(shapes, probabilities, medians_s, excess)


def _score(
    predicted: Empirical, prepared: PreparedLog, rows: NDArray[np.intp], earlier: EarlierRuns, params: EvaluateParams
) -> Scored:
    runs = prepared.runs.iloc[rows]
    actual, keys = to_digits(runs["runtime_s"].to_numpy(dtype=float)), runs["group_key"].to_numpy()
    pit = pit_values(predicted, actual, np.random.default_rng(params.seed))
    crps_s, is_unseen = predicted.crps(actual), earlier.n == 0
    parts = np.array_split(np.arange(len(rows)), TENTHS) if len(rows) >= LEAST_FOR_TENTHS else []
    coverage, width_s = coverage_of(predicted, actual)
    return Scored(
        measures={
            "crps": float(crps_s.mean()),
            "coverage90": coverage,
            "width90_s": width_s,
            "ks_pooled": ks_pooled(predicted, actual),
            "pit_error": calibration_error(pit),
        },
        ks_group=ks_by_group(predicted, actual, keys),
        n_unseen=int(is_unseen.sum()),
        unseen_crps=float(crps_s[is_unseen].mean()) if is_unseen.any() else None,
        pit=pit,
        crps_by_run=crps_s,
        tenths=[coverage_of(predicted.rows(part), actual[part])[0] for part in parts],
    )


def table_of(evaluation: RuntimeEvaluation) -> pd.DataFrame:
    """One row a predictor: its measures, ks_group and unseen_crps."""
    rows = [
        {"predictor": name, **one.measures, "ks_group": one.ks_group.value, "unseen_crps": one.unseen_crps}
        for name, one in evaluation.scored.items()
    ]
    return pd.DataFrame(rows)
