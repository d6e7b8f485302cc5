"""Runtimes of the test part, scored: the model beside its rivals on logs with known truth; and the rivals, by hand."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.normalisation import Bins
from tasks.jobs.params import BinParams, CharacteriseParams, EvaluateParams, PredictParams, ShapeParams
from tasks.jobs.predict.mixture import N_LEVELS
from tasks.jobs.predict.peers import histories, peers_of
from tasks.jobs.predict.predictor import empirical_of
from tasks.jobs.predict.preparation import prepare
from tasks.jobs.predict.runtime_evaluation import (
    evaluate_runtimes,
    global_prediction,
    history_prediction,
    predict_by_shapes,
    table_of,
)
from tasks.jobs.shapes import ShapeSet

BY_SHAPES = {"paper_ratio", "paper_delta"}


@pytest.fixture
def params():
    characterise = CharacteriseParams(bins=BinParams(ranges="data", n_bins=40), shapes=ShapeParams(k=2))
    predict = PredictParams(characterise=characterise, n_trees=20)
    return EvaluateParams(predict=predict, baseline_trees=5)


def evaluated(runs, params):
    prepared = prepare(runs, params.predict.characterise)
    sizes = {kind: len(shapes.centres) for kind, shapes in prepared.shapes.items()}
    probabilities = {kind: np.full((len(runs), k), 1 / k) for kind, k in sizes.items()}
    return prepared, evaluate_runtimes(prepared, probabilities, params)


def test_where_the_input_decides_the_model_is_better_than_all_others_by_more_than_luck(drawn, params):
    prepared, found = evaluated(drawn(900), params)
    assert set(found.scored) == {"model", "history", "lightgbm", "stacked", "global"} | BY_SHAPES
    assert found.rows.tolist() == list(range(720, 900))
    assert (prepared.runs["part"].iloc[found.rows] == "D3").all()
    crps = {name: one.measures["crps"] for name, one in found.scored.items()}
    assert min(crps, key=crps.get) == "model"
    assert crps["stacked"] < min(1.05 * crps["lightgbm"], crps["history"])
    assert "model" not in found.differences
    assert found.differences["history"].high < 0
    assert found.differences["history"].value == pytest.approx(crps["model"] - crps["history"])
    assert 0.8 < found.scored["model"].measures["coverage90"] < 0.97


def test_the_table_has_a_row_for_each_predictor(drawn, params):
    _, found = evaluated(drawn(300), params)
    table = table_of(found).set_index("predictor")
    assert set(table.index) == set(found.scored)
    assert table.loc["history", "crps"] == found.scored["history"].measures["crps"]
    assert table["coverage90"].between(0, 1).all()
    assert table["unseen_crps"].isna().all()


def test_jobs_never_seen_before_have_a_score_of_their_own(drawn, params):
    runs = drawn(400)
    new = [320, 350, 399]
    runs.loc[new, "group_key"] = ["x", "y", "z"]
    _, found = evaluated(runs, params)
    one = found.scored["model"]
    assert one.n_unseen == found.scored["history"].n_unseen == 3
    assert one.unseen_crps == pytest.approx(one.crps_by_run[np.isin(found.rows, new)].mean())


def test_of_many_test_runs_an_even_sample_over_time_is_scored(drawn, params):
    few = params.model_copy(update={"max_test_runs": 5})
    _, found = evaluated(drawn(205), few)
    assert len(found.rows) == 5
    assert (found.rows[0], found.rows[-1]) == (164, 204)
    assert np.diff(found.rows).tolist() == [10] * 4
    assert found.predicted.n == 5


def test_of_many_training_runs_the_latest_are_learnt_from(drawn, params):
    runs = drawn(400)
    slow_before = runs.assign(runtime_s=np.where(runs.index < 160, 50 * runs["runtime_s"], runs["runtime_s"]))
    _, found = evaluated(slow_before, params.model_copy(update={"max_training_runs": 160}))
    assert np.median(found.model.typical_log_s) == pytest.approx(np.log(runs["runtime_s"][160:320]).median(), abs=0.01)


def test_residuals_are_of_models_that_had_not_learnt_from_the_run(drawn, params):
    prepared, found = evaluated(drawn(400), params)
    training = np.flatnonzero(~prepared.is_part("D3"))
    early = training[: int(0.2 * len(training))]
    assert np.isnan(found.residuals[early]).all()
    assert np.isfinite(found.residuals[len(early) :]).all()
    in_time = np.log(prepared.runs["runtime_s"].to_numpy()[found.rows] / found.predicted.quantile(0.5))
    assert found.residuals[found.rows] == pytest.approx(in_time, abs=0.15)  # that one is recalibrated


def test_no_test_run_that_ends_later_changes_the_prediction_of_an_earlier_one(drawn, params):
    runs = drawn(300)
    changed = runs.copy()
    changed.loc[280:, "runtime_s"] *= 6
    changed["ended_at"] = changed["started_at"] + pd.to_timedelta(changed["runtime_s"], unit="s")
    one, other = (evaluated(log, params)[1] for log in (runs, changed))
    assert one.rows[40] == 280
    earlier = np.arange(40)
    assert one.predicted.rows(earlier).quantile(0.9).tobytes() == other.predicted.rows(earlier).quantile(0.9).tobytes()
    for name in one.scored:
        before, after = one.scored[name].crps_by_run[earlier], other.scored[name].crps_by_run[earlier]
        assert before.tobytes() == after.tobytes(), name


def test_a_log_without_labels_is_scored_without_shapes(drawn, params):
    prepared = prepare(drawn(200), params.predict.characterise)
    found = evaluate_runtimes(prepared, {}, params)
    assert set(found.scored) == {"model", "history", "lightgbm", "stacked", "global"}


def test_jobs_of_0_s_among_others_are_scored_by_all(log_of, params):
    rng = np.random.default_rng(0)
    runtimes = np.where(np.arange(300) % 3 == 0, 0.0, np.exp(rng.normal(1, 0.3, 300)))
    _, found = evaluated(log_of(runtimes, [f"j{i % 3}" for i in range(300)]), params)
    assert all(np.isfinite(one.crps_by_run).all() for one in found.scored.values())
    assert found.scored["model"].crps_by_run[::3].max() < 0.1


def test_jobs_that_take_the_same_to_the_last_digit_lie_in_their_intervals(log_of, params):
    jobs = np.arange(300) % 10
    runtimes = np.exp(np.random.default_rng(1).normal(1, 1, 10))[jobs]  # 16 digits, of which a logarithm keeps 15
    _, found = evaluated(log_of(runtimes, [f"j{job}" for job in jobs]), params)
    assert found.scored["model"].measures["coverage90"] > 0.95


def test_coverage_is_told_by_tenths_of_the_test_in_order_of_time(drawn, params):
    _, found = evaluated(drawn(1100), params)
    one = found.scored["history"]
    assert len(one.tenths) == 10 and np.mean(one.tenths) == pytest.approx(one.measures["coverage90"])
    assert evaluated(drawn(300), params)[1].scored["model"].tenths == []


def history_of(rows, runs, stand_in_s):
    known = histories(peers_of(rows, runs))
    return empirical_of(history_prediction(known, "job", np.tile(np.log(stand_in_s), (len(rows), 1))))


def test_history_is_the_runs_of_the_job_that_had_ended_before(log_of):
    runs = log_of([1.0, 50.0, 3.0, 5.0, 7.0], ["a", "b", "a", "a", "a"])
    told = history_of(runs, runs, np.full(N_LEVELS, 9.0))
    assert told.quantile(0.5) == pytest.approx([9, 9, 1, np.sqrt(3), 3], rel=0.03)  # logs are interpolated
    assert told.quantile(0.99)[2:] == pytest.approx([1, 3, 5])


def test_one_shape_is_stretched_to_the_median_of_each_job():
    ratios = np.linspace(0.5, 1.5, 2001)
    told = global_prediction(ratios, np.array([10.0, 40.0]))
    assert told.quantile(0.5) == pytest.approx([10, 40], rel=0.01)
    assert told.quantile(0.25) == pytest.approx([7.5, 30], rel=0.01)


RATIO = Bins(kind="ratio", low=0, high=2, n_bins=4)  # 0 s; below the median; up to twice; beyond
DELTA = Bins(kind="delta", low=-4, high=4, n_bins=4)  # below -4 s; -4 to 0; 0 to 4; above 4 s
CENTRES = np.array([[0, 0.75, 0.25, 0], [0, 0.25, 0.75, 0]])
P = np.array([[0.6, 0.4], [0.1, 0.9]])
MEDIANS = np.array([10.0, 100.0])


def predict(bins=RATIO, *, excess=0.0, centres=CENTRES):
    shapes = ShapeSet(bins, centres, np.array([3, 1]), 0.0)
    return predict_by_shapes(shapes, P, MEDIANS, excess)


def test_the_most_probable_shape_is_stretched_by_the_median():
    assert predict().cdf(np.array([10.0, 100.0])) == pytest.approx([0.75, 0.25])
    assert predict().cdf(np.array([20.0, 200.0])) == pytest.approx([1, 1])


def test_deltas_are_added_to_the_median_and_nothing_takes_less_than_0_s():
    told = predict(DELTA)
    assert told.cdf(MEDIANS) == pytest.approx([0.75, 0.25])
    assert told.cdf_below(MEDIANS - 4) == pytest.approx([0, 0])
    assert told.cdf(MEDIANS + 4) == pytest.approx([1, 1])
    assert predict(Bins(kind="delta", low=-400, high=400, n_bins=4)).quantile(0.01).tolist() == [0, 0]


def test_outliers_lie_beyond_the_bins_by_their_mean_excess():
    told = predict(excess=3.0, centres=np.array([[0.1, 0.55, 0.25, 0.1], [0.1, 0.25, 0.55, 0.1]]))
    # the bin of 0 s and that below the median
    assert told.cdf(np.array([10.0, 100.0])) == pytest.approx([0.65, 0.35], abs=6e-3)
    # a tenth beyond twice the median, exponentially by three medians in the mean
    assert told.quantile(0.95) == pytest.approx(MEDIANS * (2 + 3 * np.log(0.1 / 0.05)), rel=0.05)
