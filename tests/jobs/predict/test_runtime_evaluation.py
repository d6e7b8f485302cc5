"""The runtimes of the test part, scored: the model beside its rivals on drawn logs with known truth."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.predict.params import (
    EvaluateParams,
    PredictParams,
)
from tasks.jobs.predict.preparation import prepare
from tasks.jobs.predict.runtime_evaluation import evaluate_runtimes, table_of
from tasks.jobs.shape_params import (
    BinParams,
    CharacteriseParams,
    ShapeParams,
)

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
    assert found.residuals[found.rows] == pytest.approx(in_time, abs=0.05)


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
