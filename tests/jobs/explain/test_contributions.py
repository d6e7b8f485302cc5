"""SHAP values of LightGBM models: additive, in their places, and true to what the model was taught."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tasks.errors import BadInput
from tasks.jobs.explain.contributions import contributions

SMALL = {"num_leaves": 8, "learning_rate": 0.2, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, "seed": 1}
ROUNDS = 20


def features(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["load_mean", "input_bytes", "queue_length"])
    frame.loc[::7, "queue_length"] = np.nan
    return frame


def train(frame, target, **params):
    return lgb.train(SMALL | params, lgb.Dataset(frame, np.asarray(target, dtype=float)), ROUNDS)


def three_classes(frame):
    return np.digitize(frame["load_mean"], [-0.5, 0.5])


def test_the_parts_of_three_classes_add_up_to_the_raw_scores():
    frame = features()
    booster = train(frame, three_classes(frame), objective="multiclass", num_class=3)
    parts = contributions(booster, frame, 3)
    assert parts.to_score(2).shape == (400, 3)
    assert parts.base.shape == (400, 3)
    assert parts.raw == pytest.approx(booster.predict(frame, raw_score=True), abs=1e-9)


def test_the_parts_of_a_regression_add_up_to_the_prediction():
    frame = features()
    booster = train(frame, frame["load_mean"] * 2 + frame["input_bytes"], objective="regression")
    assert contributions(booster, frame, 1).raw[:, 0] == pytest.approx(booster.predict(frame), abs=1e-9)


def test_a_binary_model_gives_its_probabilities_back_through_softmax():
    frame = features()
    booster = train(frame, frame["load_mean"] > 0, objective="binary")
    raw = contributions(booster, frame, 2).raw
    assert raw[:, 0] == pytest.approx(-raw[:, 1])
    assert softmax(raw, axis=1)[:, 1] == pytest.approx(booster.predict(frame), abs=1e-9)


def test_what_the_label_depends_on_alone_adds_most():
    frame = features()
    parts = contributions(train(frame, three_classes(frame), objective="multiclass", num_class=3), frame, 3)
    importance = np.abs(parts.values).mean(axis=(0, 2))
    assert importance.argmax() == 0
    assert importance[0] > 10 * importance[1:].max()


def test_columns_in_another_order_and_others_beside_them_change_nothing():
    frame = features()
    booster = train(frame, frame["load_mean"], objective="regression")
    shuffled = frame[["queue_length", "load_mean", "input_bytes"]].assign(more=1.0)
    there, back = contributions(booster, frame, 1), contributions(booster, shuffled, 1)
    assert there.features == back.features
    assert np.array_equal(there.values, back.values)


def test_classes_that_the_model_never_saw_stay_impossible_and_explain_nothing():
    frame = features()
    booster = train(frame, three_classes(frame), objective="multiclass", num_class=3)
    parts = contributions(booster, frame, 5, classes=[4, 1, 2])
    assert parts.knows.tolist() == [False, True, True, False, True]
    assert not parts.to_score(0).any()
    assert not parts.to_score(3).any()
    probabilities = softmax(parts.raw, axis=1)
    assert probabilities[:, [4, 1, 2]] == pytest.approx(booster.predict(frame), abs=1e-9)
    assert not probabilities[:, [0, 3]].any()


def test_a_binary_model_of_two_shapes_among_five_knows_their_places():
    frame = features()
    booster = train(frame, frame["load_mean"] > 0, objective="binary")
    parts = contributions(booster, frame, 5, classes=[1, 3])
    assert softmax(parts.raw, axis=1)[:, 3] == pytest.approx(booster.predict(frame), abs=1e-9)


def test_a_model_trained_without_names_takes_those_of_the_frame():
    frame = features()
    booster = train(frame.to_numpy(), frame["load_mean"], objective="regression")
    assert contributions(booster, frame, 1).features == ("load_mean", "input_bytes", "queue_length")


def test_one_run_is_explained_as_it_is_among_many():
    frame = features()
    booster = train(frame, frame["load_mean"], objective="regression")
    alone = contributions(booster, frame.iloc[[5]], 1)
    among = contributions(booster, frame, 1).rows(slice(5, 6))
    assert np.array_equal(alone.values, among.values)


def test_no_runs_have_no_contributions():
    frame = features()
    booster = train(frame, frame["load_mean"], objective="regression")
    parts = contributions(booster, frame.iloc[:0], 1)
    assert parts.single.shape == (0, 3)
    assert parts.raw.shape == (0, 1)


def test_a_missing_feature_is_named():
    frame = features()
    booster = train(frame, frame["load_mean"], objective="regression")
    with pytest.raises(BadInput, match=r"1 of the model's 3 are missing \(input_bytes\); expected all of them"):
        contributions(booster, frame.drop(columns="input_bytes"), 1)


def test_fewer_scores_than_shapes_need_to_be_told_apart():
    frame = features()
    booster = train(frame, three_classes(frame), objective="multiclass", num_class=3)
    with pytest.raises(ValueError, match="3 scores for 5 shapes; expected `classes`"):
        contributions(booster, frame, 5)
    with pytest.raises(ValueError, match="expected 3 different ones from 0 to 4"):
        contributions(booster, frame, 5, classes=[1, 1, 2])
    with pytest.raises(ValueError, match=r"3 scores; expected one; use odds\.towards"):
        _ = contributions(booster, frame, 3).single
