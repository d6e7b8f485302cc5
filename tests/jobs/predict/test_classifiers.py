"""Classifiers of shapes: known truth, missing shapes and values, one shape, and the same numbers every time."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.predict import classifier_members
from tasks.jobs.predict.calibration import fit_temperature, log_loss, tempered
from tasks.jobs.predict.classifier_lightgbm import LightGbm
from tasks.jobs.predict.classifier_members import ENSEMBLE, Member
from tasks.jobs.predict.classifier_params import ClassifierParams
from tasks.jobs.predict.classifier_report import member_importances
from tasks.jobs.predict.classifiers import Frequencies, Vote, calibrate, fit_classifier
from tasks.jobs.predict.holdout import hold_out
from tasks.jobs.predict.soft_labels import soften

SMALL = ClassifierParams(n_rounds=15, min_leaf=5, forest_trees=15, boosting_trees=4, learning_rate=0.2)
METHODS = ("lightgbm", "forest", "ensemble")


def of(method: str, **changes: object) -> ClassifierParams:
    return ClassifierParams(**{**SMALL.model_dump(), "method": method, **changes})


def case(n: int = 240, *, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three shapes that the first feature tells, one value in ten missing; the second is noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    frame = pd.DataFrame({"load": labels + rng.normal(0, 0.2, n), "noise": rng.normal(0, 1, n)})
    return frame.mask(pd.DataFrame(rng.random((n, 2)) < 0.1, columns=frame.columns)), labels


@pytest.mark.parametrize("method", METHODS)
def test_shapes_that_a_feature_tells_are_learnt_with_missing_values(method):
    frame, labels = case()
    fitted = fit_classifier(frame, labels, 3, of(method))
    later, truth = case(seed=1)
    p = fitted.predict_proba(later)
    assert np.mean(p.argmax(axis=1) == truth) > 0.85  # nine in ten have the value
    assert p.sum(axis=1) == pytest.approx(np.ones(len(later)))


@pytest.mark.parametrize("method", METHODS)
def test_a_shape_without_training_rows_has_a_column_of_zeros(method):
    frame, labels = case()
    fitted = fit_classifier(frame, labels * 2, 6, of(method))  # shapes 0, 2 and 4 of 0 … 5
    p = fitted.predict_proba(frame)
    assert p.shape == (len(frame), 6)
    assert fitted.classes.tolist() == [0, 1, 2, 3, 4, 5]
    assert (p[:, [1, 3, 5]] == 0).all()
    assert np.mean(p.argmax(axis=1) == labels * 2) > 0.85
    assert p.sum(axis=1) == pytest.approx(np.ones(len(frame)))


@pytest.mark.parametrize("method", METHODS)
def test_with_one_shape_only_that_one_is_certain(method):
    frame, _ = case(30)
    fitted = fit_classifier(frame, np.full(30, 1), 3, of(method))
    assert fitted.predict_proba(frame).tolist() == [[0, 1, 0]] * 30


@pytest.mark.parametrize("method", METHODS)
def test_features_that_never_vary_give_the_shares_of_the_shapes(method):
    frame = pd.DataFrame({"load": [1.0] * 4, "never": [np.nan] * 4})
    fitted = fit_classifier(frame, [0, 0, 0, 2], 3, of(method))
    assert isinstance(fitted, Frequencies)
    assert fitted.predict_proba(frame.iloc[:1]).tolist() == [[0.75, 0, 0.25]]


@pytest.mark.parametrize("method", METHODS)
def test_odd_features_beside_others_do_no_harm(method):
    frame, labels = case()
    odd = frame.assign(
        constant=3.0, empty=np.nan, huge=np.where(labels == 0, np.inf, 1e300), sparse=[1.0] + [np.nan] * 239
    )
    p = fit_classifier(odd, labels, 3, of(method)).predict_proba(odd)
    assert np.isfinite(p).all()
    assert np.mean(p.argmax(axis=1) == labels) > 0.8


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bits_and_columns_are_found_by_name(method):
    frame, labels = case()
    one, other = (fit_classifier(frame, labels, 3, of(method)) for _ in range(2))
    assert (one.predict_proba(frame) == other.predict_proba(frame[["noise", "load"]])).all()


@pytest.mark.parametrize("method", METHODS)
def test_no_rows_to_predict_give_no_rows(method):
    frame, labels = case()
    assert fit_classifier(frame, labels, 3, of(method)).predict_proba(frame.iloc[:0]).shape == (0, 3)


def test_rows_without_a_label_are_not_learnt_from():
    frame, labels = case()
    lies = pd.concat([frame, frame])
    fitted = fit_classifier(lies, np.r_[labels, np.full(len(labels), -1)], 3, SMALL)
    assert (fitted.predict_proba(frame) == fit_classifier(frame, labels, 3, SMALL).predict_proba(frame)).all()


def test_rows_of_no_weight_count_for_nothing():
    frame = pd.DataFrame({"x": np.r_[np.zeros(50), np.ones(50)]})
    labels, weights = np.r_[np.zeros(50), np.tile([0, 1], 25)].astype(int), np.r_[np.ones(50), np.tile([0, 1], 25)]
    p = fit_classifier(frame, labels, 2, of("lightgbm", l2=0), weights=weights).predict_proba(frame)
    assert p[-1, 1] > 0.9
    assert p[0, 1] < 0.1


@pytest.mark.parametrize("method", ["lightgbm", "forest"])
def test_labels_of_which_half_are_luck_are_learnt_as_half_sure(method):
    frame = pd.DataFrame({"x": np.r_[np.zeros(60), np.ones(60)]})
    labels, p = np.zeros(120, dtype=int), np.r_[np.tile([1.0, 0.0], (60, 1)), np.tile([0.5, 0.5], (60, 1))]
    told = fit_classifier(frame, labels, 2, of(method, n_rounds=60, boosting_trees=60), posteriors=p)
    found = told.predict_proba(frame)
    assert found[0, 1] < 0.1
    assert found[-1, 1] == pytest.approx(0.5, abs=0.05)
    assert isinstance(fit_classifier(frame, labels, 2, of(method)), Frequencies)  # as certain, there is one shape


def test_a_row_becomes_one_for_each_shape_that_is_likely_enough():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[7, 8, 9])
    p = [[0.6, 0.39, 0.01], [1, 0, 0], [np.nan] * 3]
    rows, labels, weights = soften(frame, np.array([0, 0, 2]), p, np.array([2.0, 1.0, 1.0]), least=0.02)
    assert rows.index.tolist() == [7, 7, 8, 9]
    assert labels.tolist() == [0, 1, 0, 2]
    assert weights == pytest.approx([2 * 0.6 / 0.99, 2 * 0.39 / 0.99, 1, 1])
    with pytest.raises(BadInput, match=r"posteriors: shape \(1, 3\); expected one row for each of the 3 rows"):
        soften(frame, np.array([0, 0, 2]), p[:1], None, least=0.02)


def test_lightgbm_as_text_predicts_the_same_bits():
    frame, labels = case()
    fitted = fit_classifier(frame, labels * 2, 6, SMALL)
    assert isinstance(fitted, LightGbm)
    again = LightGbm.from_texts(*calibrate(fitted, frame, labels * 2).to_texts())
    assert (again.predict_proba(frame) == calibrate(fitted, frame, labels * 2).predict_proba(frame)).all()
    assert again.booster.num_model_per_iteration() == 6  # one tree a shape and round, also of those never seen


@pytest.mark.parametrize(("trees", "rest"), [("", "{}"), ("tree", '{"columns": ["a"], "present": [true, true]}')])
def test_a_text_that_is_no_classifier_is_refused_in_one_line(trees, rest):
    with pytest.raises(BadInput, match=r"classifier: no classifier .*; expected the texts of LightGbm\.to_texts"):
        LightGbm.from_texts(trees, rest)


def test_features_with_names_that_lightgbm_refuses_are_taken():
    frame, labels = case()
    odd = frame.rename(columns={"load": 'op_{"a": [b]}', "noise": "op two"})
    p = fit_classifier(odd, labels, 3, SMALL).predict_proba(odd)
    assert np.mean(p.argmax(axis=1) == labels) > 0.85


def test_a_missing_feature_is_named():
    frame, labels = case()
    with pytest.raises(BadInput, match="features: no load; expected the 2 features of the model"):
        fit_classifier(frame, labels, 3, SMALL).predict_proba(frame[["noise"]])


def test_a_feature_that_is_missing_for_the_first_time_counts_as_its_median_and_not_as_zero():
    frame = pd.DataFrame({"x": np.r_[np.linspace(100, 200, 100), np.linspace(201, 400, 300)]})
    fitted = fit_classifier(frame, np.r_[np.zeros(100), np.ones(300)].astype(int), 2, SMALL)
    assert fitted.predict_proba(pd.DataFrame({"x": [np.nan]})).argmax() == 1
    assert fitted.predict_proba(pd.DataFrame({"x": [0.0]})).argmax() == 0


def test_the_ensemble_is_the_mean_of_five_and_each_stands_for_itself():
    frame, labels = case()
    fitted = fit_classifier(frame, labels, 3, of("ensemble"))
    assert isinstance(fitted, Vote)
    assert tuple(name for name, _ in fitted.members) == ENSEMBLE
    mean = np.mean([member.predict_proba(frame) for _, member in fitted.members], axis=0)
    assert fitted.predict_proba(frame) == pytest.approx(mean)
    assert {"forest", "lightgbm"} <= set(member_importances(fitted))


def test_without_xgboost_scikit_learn_s_boosted_trees_stand_in(monkeypatch):
    monkeypatch.setattr(classifier_members, "has_xgboost", lambda: False)
    frame, labels = case()
    fitted = classifier_members.fit_member("xgboost", frame, labels, 3, SMALL, None)
    assert isinstance(fitted, Member)
    assert type(fitted.model).__name__ == "HistGradientBoostingClassifier"


def test_gradient_boosting_looks_at_a_sample_of_many_rows():
    frame, labels = case()
    fitted = classifier_members.fit_member(
        "gradient_boosting", frame, labels, 3, of("ensemble", boosting_max_rows=60), None
    )
    assert isinstance(fitted, Member)
    assert fitted.model.estimators_[0, 0].tree_.n_node_samples[0] <= 60


def test_a_temperature_makes_overconfident_probabilities_as_sure_as_they_are_right():
    rng = np.random.default_rng(2)
    labels = (rng.random(4000) < 0.7).astype(int)  # seven in ten are shape 1
    sure = np.tile([0.01, 0.99], (4000, 1))
    temperature = fit_temperature(sure, labels)
    # p ** (1 / t) is 0.7 of the sum where log(99) / t = log(0.7 / 0.3)
    assert temperature == pytest.approx(np.log(99) / np.log(7 / 3), rel=0.1)
    assert log_loss(tempered(sure, temperature), labels) < log_loss(sure, labels)


def test_a_temperature_changes_no_label_and_leaves_the_impossible_impossible():
    p = np.array([[0.6, 0.4, 0.0], [0.2, 0.3, 0.5]])
    for temperature in (0.3, 1.0, 5.0):
        found = tempered(p, temperature)
        assert found.argmax(axis=1).tolist() == [0, 2]
        assert found.sum(axis=1) == pytest.approx([1, 1])
        assert found[0, 2] == 0
    assert tempered(p, 1.0) == pytest.approx(p)


def test_a_held_out_tail_tempers_a_classifier_of_labels_that_are_luck():
    rng = np.random.default_rng(3)
    groups = np.tile(np.arange(40), 20)
    frame = pd.DataFrame({"id": groups.astype(float)})  # a job can be learnt by heart, a new one cannot be told
    labels = rng.integers(0, 2, 40)[groups]
    params = of("lightgbm", calibration_share=0.3)
    fitted = fit_classifier(frame, labels, 2, params, groups=groups)
    assert fitted.temperature > 1.1
    assert fit_classifier(frame, labels, 2, of("lightgbm"), groups=groups).temperature == 1
    with pytest.raises(BadInput, match="training rows: no jobs of the rows"):
        fit_classifier(frame, labels, 2, params)


def test_a_holdout_is_later_and_its_unseen_jobs_are_not_trained_on():
    groups = np.tile(np.arange(10), 10)
    held = hold_out(groups, 0.3, 0.5, seed=1)
    assert np.flatnonzero(held.is_later).tolist() == list(range(70, 100))
    assert held.n_unseen == 5
    assert len(set(groups[held.is_training])) == 5
    assert np.flatnonzero(held.is_training).max() < 70
    with pytest.raises(BadInput, match="training rows: 10 rows of 10 jobs; expected enough to hold out"):
        hold_out(np.arange(10), 0.01, 0.5, seed=1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([-1, -1], "training rows: no row has a label"),
        ([0, 3], "labels: shape 3; expected shapes 0 to 2"),
        ([0], "labels: 1 rows; expected one for each of the 2 rows of features"),
    ],
)
def test_labels_that_do_not_fit_are_refused_in_one_line(labels, message):
    with pytest.raises(BadInput, match=message):
        fit_classifier(pd.DataFrame({"x": [0.0, 1.0]}), labels, 3, SMALL)
