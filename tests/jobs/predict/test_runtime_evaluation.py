"""Runtimes of the test part, scored: the model beside its rivals on logs with known truth; and the rivals, by hand."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.distribution import Tails
from tasks.jobs.normalisation import Bins
from tasks.jobs.params import BinParams, CharacteriseParams, EvaluateParams, PredictParams, ShapeParams
from tasks.jobs.predict.peers import earlier_runs, histories
from tasks.jobs.predict.pool import N_LEVELS
from tasks.jobs.predict.predictor import told_as
from tasks.jobs.predict.preparation import prepare
from tasks.jobs.predict.runtime_evaluation import (
    evaluate_runtimes,
    forest_prediction,
    global_prediction,
    history_prediction,
    own_counts,
    predict_by_shapes,
    table_of,
)
from tasks.jobs.shapes import ShapeSet

BY_SHAPES = {f"{variant}_{kind}" for variant in ("hard", "soft", "leaning") for kind in ("ratio", "delta")}


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
    assert set(found.scored) == {"model", "history", "lightgbm", "forest", "global"} | BY_SHAPES
    assert found.rows.tolist() == list(range(720, 900))
    assert (prepared.runs["part"].iloc[found.rows] == "D3").all()
    crps = {name: one.crps.value for name, one in found.scored.items()}
    assert min(crps, key=crps.get) == "model"
    assert "model" not in found.differences
    assert found.differences["history"].high < 0
    assert found.differences["history"].value == pytest.approx(crps["model"] - crps["history"])
    assert 0.8 < found.scored["model"].coverage.share < 0.97


def test_the_table_has_a_row_for_each_predictor(drawn, params):
    _, found = evaluated(drawn(300), params)
    table = table_of(found).set_index("predictor")
    assert set(table.index) == set(found.scored)
    assert table.loc["history", "crps"] == found.scored["history"].crps.value
    assert table["coverage90"].between(0, 1).all()
    assert table.loc["forest", "width90_s"] == 0
    assert table["unseen_crps"].isna().all()


def test_jobs_never_seen_before_have_a_score_of_their_own(drawn, params):
    runs = drawn(400)
    new = [320, 350, 399]
    runs.loc[new, "group_key"] = ["x", "y", "z"]
    _, found = evaluated(runs, params)
    one = found.scored["model"]
    assert one.unseen_crps.n == 3
    assert one.unseen_crps.value == pytest.approx(one.crps_by_run[np.isin(found.rows, new)].mean())
    assert found.scored["history"].unseen_crps.n == 3


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
    assert found.model.usual_log_s == pytest.approx(np.log(runs["runtime_s"][160:320]).median())


def test_residuals_are_of_models_that_had_not_learnt_from_the_run(drawn, params):
    prepared, found = evaluated(drawn(400), params)
    training = np.flatnonzero(~prepared.is_part("D3"))
    early = training[: int(0.6 * len(training))]
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


def test_the_same_log_gives_the_same_figures(drawn, params):
    one, other = (table_of(evaluated(drawn(200), params)[1]) for _ in range(2))
    pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_a_log_without_labels_is_scored_without_shapes(drawn, params):
    prepared = prepare(drawn(200), params.predict.characterise)
    found = evaluate_runtimes(prepared, {}, params)
    assert set(found.scored) == {"model", "history", "lightgbm", "forest", "global"}


def test_a_log_of_one_job_has_no_interval_for_its_differences(log_of, params):
    _, found = evaluated(log_of(np.exp(np.random.default_rng(0).normal(0, 0.3, 200))), params)
    assert found.differences["history"].low is None
    assert found.differences["history"].reason == "one group: nothing to draw from"


def test_constant_runtimes_leave_nothing_to_history_and_little_to_the_model(log_of, params):
    _, found = evaluated(log_of(np.full(200, 20.0), np.tile(["a", "b"], 100)), params)
    assert found.scored["history"].crps.value == pytest.approx(0, abs=1e-9)
    assert found.scored["model"].crps.value < 0.5


def test_jobs_of_0_s_among_others_are_scored_by_all(log_of, params):
    rng = np.random.default_rng(0)
    runtimes = np.where(np.arange(300) % 3 == 0, 0.0, np.exp(rng.normal(1, 0.3, 300)))
    _, found = evaluated(log_of(runtimes, [f"j{i % 3}" for i in range(300)]), params)
    assert all(np.isfinite(one.crps_by_run).all() for one in found.scored.values())
    assert found.scored["model"].log_score.n_left_out == 20
    assert found.scored["model"].crps_by_run[::3].max() < 0.1


def test_coverage_is_told_by_tenths_of_the_test_in_order_of_time(drawn, params):
    _, found = evaluated(drawn(1100), params)
    one = found.scored["history"]
    assert len(one.tenths) == 10 and np.mean(one.tenths) == pytest.approx(one.coverage.share)
    assert found.scored["hard_ratio"].tenths == []
    assert evaluated(drawn(300), params)[1].scored["model"].tenths == []


def history_of(rows, runs, stand_in_s):
    known = histories(rows, runs)
    return told_as(history_prediction(known, "job", np.tile(np.log(stand_in_s), (len(rows), 1))))


def test_history_is_the_runs_of_the_job_that_had_ended_before(log_of):
    runs = log_of([1.0, 50.0, 3.0, 5.0, 7.0], ["a", "b", "a", "a", "a"])
    told = history_of(runs, runs, np.full(N_LEVELS, 9.0))
    assert told.quantile(0.5) == pytest.approx([9, 9, 1, np.sqrt(3), 3], rel=0.03)  # logs are interpolated
    assert told.quantile(0.99)[2:] == pytest.approx([1, 3, 5])


def test_a_run_that_has_not_ended_yet_is_no_history(log_of):
    runs = log_of([1.0, 600.0, 2.0])  # the second is still going on when the third begins
    assert history_of(runs[2:], runs, np.ones(N_LEVELS)).quantile(0.99) == pytest.approx([1])


def test_quantiles_of_all_runs_stand_in_for_a_job_never_seen(log_of):
    runs = log_of([1.0, 2.0], ["a", "b"])
    told = history_of(runs, runs, np.arange(1.0, N_LEVELS + 1))
    assert told.quantile(0.5) == pytest.approx([50, 50])


def test_one_shape_is_stretched_to_the_median_of_each_job(log_of):
    runs = log_of([1.0, 2.0])
    ratios = np.linspace(0.5, 1.5, 2001)
    told = global_prediction(earlier_runs(runs, runs), ratios, np.array([10.0, 40.0]))
    assert told.quantile(0.5) == pytest.approx([10, 40], rel=0.01)
    assert told.quantile(0.25) == pytest.approx([7.5, 30], rel=0.01)


def forest(features, runtime_s, asked):
    return forest_prediction(features, runtime_s, asked, n_trees=20, seed=0)


def test_the_forest_learns_a_step_and_gives_one_sure_value():
    x = np.linspace(-1, 1, 200)
    features = pd.DataFrame({"x": x, "unknown": np.nan})
    told = forest(features, np.where(x > 0, 9.0, 3.0), pd.DataFrame({"x": [-0.5, 0.5], "unknown": 0.0}))
    assert told.quantile(0.05) == pytest.approx([3, 9], abs=0.01)
    assert (told.quantile(0.05) == told.quantile(0.95)).all()
    assert told.crps(np.array([4.0, 9.0])) == pytest.approx([1, 0], abs=0.01)


def test_the_forest_takes_rows_with_unknown_values():
    features = pd.DataFrame({"x": [0.0, np.nan, 1.0, np.nan] * 20})
    told = forest(features, np.array([1.0, 5.0, 3.0, 5.0] * 20), features[:4])
    assert told.quantile(0.5) == pytest.approx([1, 5, 3, 5], abs=0.01)


def test_the_forest_without_a_feature_that_varies_gives_the_mean():
    features = pd.DataFrame({"x": np.ones(400)})
    told = forest(features, np.tile([1.0, 2.0, 3.0, 6.0], 100), features[:2])
    assert told.quantile(0.5) == pytest.approx([3, 3], rel=0.03)


def test_the_same_seed_gives_the_same_forest():
    rng = np.random.default_rng(0)
    features, runtime_s = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")), rng.random(60)
    one, other = (forest(features, runtime_s, features).quantile(0.5) for _ in range(2))
    assert one.tobytes() == other.tobytes()


RATIO = Bins(kind="ratio", low=0, high=2, n_bins=4)  # 0 s; below the median; up to twice; beyond
DELTA = Bins(kind="delta", low=-4, high=4, n_bins=4)  # below -4 s; -4 to 0; 0 to 4; above 4 s
CENTRES = np.array([[0, 0.75, 0.25, 0], [0, 0.25, 0.75, 0]])
P = np.array([[0.6, 0.4], [0.1, 0.9]])
MEDIANS = np.array([10.0, 100.0])


def predict(variant, bins=RATIO, *, own=None, prior=0.0, centres=CENTRES):
    shapes = ShapeSet(bins, centres, np.array([0.5, 0.5]), np.array([3, 1]), 0.0)
    return predict_by_shapes(variant, shapes, P, MEDIANS, Tails(), own=own, empty_bin_prior=prior)


def test_the_hard_label_is_the_most_probable_shape_alone():
    told = predict("hard")
    assert told.cdf(np.array([10.0, 100.0])) == pytest.approx([0.75, 0.25])
    assert told.cdf(np.array([20.0, 200.0])) == pytest.approx([1, 1])


def test_the_mixture_weighs_shapes_by_their_probability():
    # 0.6 · 0.75 + 0.4 · 0.25 and 0.1 · 0.75 + 0.9 · 0.25
    assert predict("soft").cdf(np.array([10.0, 100.0])) == pytest.approx([0.55, 0.3])


def test_leaning_counts_own_runs_against_twenty_of_the_mixture():
    own = np.array([[0.0, 0, 30, 0], [0, 0, 0, 0]])
    # (0 + 20 · 0.55) / 50; the second job has no run of its own
    assert predict("leaning", own=own).cdf(np.array([10.0, 100.0])) == pytest.approx([0.22, 0.3])


def test_as_own_runs_gather_the_prediction_becomes_theirs():
    own = np.array([[0.0, 1e6, 0, 0], [0, 1e6, 1e6, 0]])
    assert predict("leaning", own=own).cdf(np.array([10.0, 100.0])) == pytest.approx([1, 0.5], abs=1e-4)


def test_without_own_runs_leaning_is_the_mixture():
    at = np.array([7.0, 130.0])
    assert predict("leaning").cdf(at) == pytest.approx(predict("soft").cdf(at))
    assert predict("leaning", own=np.zeros((2, 4))).cdf(at) == pytest.approx(predict("soft").cdf(at))


@pytest.mark.parametrize("variant", ["hard", "soft", "leaning"])
def test_deltas_are_added_to_the_median(variant):
    told = predict(variant, DELTA, own=np.zeros((2, 4)))
    below = {"hard": [0.75, 0.25]}.get(variant, [0.55, 0.3])
    assert told.cdf(MEDIANS) == pytest.approx(below)
    assert told.cdf(MEDIANS - 4) == pytest.approx([0, 0])
    assert told.cdf(MEDIANS + 4) == pytest.approx([1, 1])


@pytest.mark.parametrize("variant", ["hard", "soft", "leaning"])
def test_runs_of_no_length_count_with_the_shortest_bin_of_a_ratio(variant):
    centres = np.array([[0.5, 0.25, 0.25, 0]] * 2)
    told = predict(variant, centres=centres, own=np.zeros((2, 4)))
    assert told.cdf(MEDIANS) == pytest.approx([0.75, 0.75])
    assert told.cdf(np.zeros(2)) == pytest.approx([0, 0])


def test_a_share_spread_over_all_bins_makes_nothing_impossible():
    told = predict("hard", prior=0.4)
    # 0.6 · 0.75 + 0.4 · 2/4: the bin of 0 s and that below the median
    assert told.cdf(np.array([10.0, 100.0])) == pytest.approx([0.65, 0.35])
    assert told.cdf(np.array([20.0, 200.0])) == pytest.approx([0.9, 0.9])
    assert np.isfinite(told.log_density(np.array([25.0, 250.0]))).all()


def test_the_last_runs_that_had_ended_are_counted_by_bin(log_of):
    runs = log_of([1.0] * 5, ["a", "a", "b", "a", "a"])
    found = own_counts(earlier_runs(runs, runs), np.array([0, 1, 2, -1, 0]), 3, most=2)
    assert found.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]]
