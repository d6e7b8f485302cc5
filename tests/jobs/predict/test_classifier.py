"""The classifier of shapes: known truth, missing shapes and values, one shape, and the same numbers every time."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.predict.classifier import Frequencies, LabelledRows, LightGbm, fit_classifier, soften


def case(n: int = 600, *, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three shapes that the first feature tells, one value in ten missing; the second is noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    frame = pd.DataFrame({"load": labels + rng.normal(0, 0.2, n), "noise": rng.normal(0, 1, n)})
    return frame.mask(pd.DataFrame(rng.random((n, 2)) < 0.1, columns=frame.columns)), labels


def rows_of(frame, labels, k, jobs=None):
    """Rows of as many jobs, with labels that are certain."""
    jobs = np.arange(len(frame)) if jobs is None else jobs
    return LabelledRows(frame, np.asarray(jobs, dtype=object), np.eye(k)[labels])


def fitted(frame, labels, k, *, columns=None):
    data = rows_of(frame, labels, k)
    return fit_classifier(data, columns or list(frame), "ratio", n_rounds=60, seed=0)


def test_shapes_that_a_feature_tells_are_learnt_with_missing_values():
    p = fitted(*case(), 3).predict_proba(case(seed=1)[0])
    assert np.mean(p.argmax(axis=1) == case(seed=1)[1]) > 0.85  # nine in ten have the value
    assert p.sum(axis=1) == pytest.approx(np.ones(600))


def test_a_shape_without_training_rows_has_a_column_of_zeros():
    frame, labels = case()
    p = fitted(frame, labels * 2, 6).predict_proba(frame)  # shapes 0, 2 and 4 of 0 … 5
    assert p.shape == (len(frame), 6)
    assert (p[:, [1, 3, 5]] == 0).all()
    assert np.mean(p.argmax(axis=1) == labels * 2) > 0.85
    assert p.sum(axis=1) == pytest.approx(np.ones(len(frame)))


def test_with_one_shape_only_that_one_is_certain():
    found = fitted(case(30)[0], np.full(30, 1), 3)
    assert found.predict_proba(case(30)[0]).tolist() == [[0, 1, 0]] * 30


def test_features_that_never_vary_give_the_shares_of_the_shapes():
    frame = pd.DataFrame({"load": [1.0] * 4, "never": [np.nan] * 4})
    found = fitted(frame, np.array([0, 0, 0, 2]), 3)
    assert isinstance(found, Frequencies)
    assert found.predict_proba(frame.iloc[:1]) == pytest.approx(np.array([[0.75, 0, 0.25]]))


def test_the_same_seed_gives_the_same_bits_and_columns_are_found_by_name():
    frame, labels = case()
    one, other = (fitted(frame, labels, 3) for _ in range(2))
    assert (one.predict_proba(frame) == other.predict_proba(frame[["noise", "load"]])).all()


def test_no_rows_to_predict_give_no_rows():
    frame, labels = case()
    assert fitted(frame, labels, 3).predict_proba(frame.iloc[:0]).shape == (0, 3)


def test_every_job_counts_the_same_however_often_it_ran():
    data = rows_of(pd.DataFrame({"x": np.zeros(4)}), np.zeros(4, dtype=int), 2, jobs=["a", "a", "a", "b"])
    assert data.weights == pytest.approx(np.array([1, 1, 1, 3]) * 4 / 6)
    likely = np.array([[1, 0], [1, 0], [1, 0], [0, 1.0]])
    shares = fit_classifier(LabelledRows(data.features, data.jobs, likely), ["x"], "ratio", n_rounds=5, seed=0)
    assert shares.predict_proba(data.features.iloc[:1]) == pytest.approx(np.array([[0.5, 0.5]]))


def test_labels_of_which_half_are_luck_are_learnt_as_half_sure():
    frame = pd.DataFrame({"x": np.r_[np.zeros(600), np.ones(600)]})
    likely = np.r_[np.tile([1.0, 0.0], (600, 1)), np.tile([0.5, 0.5], (600, 1))]
    data = LabelledRows(frame, np.arange(1200).astype(object), likely)
    found = fit_classifier(data, ["x"], "ratio", n_rounds=80, seed=0).predict_proba(frame)
    assert found[0, 1] < 0.1
    assert found[-1, 1] == pytest.approx(0.5, abs=0.05)


def test_a_row_becomes_one_for_each_shape_that_is_likely_enough():
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=[7, 8])
    rows, labels, weights = soften(frame, [[0.6, 0.39, 0.01], [1, 0, 0]], np.array([2.0, 1.0]))
    assert rows.index.tolist() == [7, 7, 8]
    assert labels.tolist() == [0, 1, 0]
    assert weights == pytest.approx([2 * 0.6 / 0.99, 2 * 0.39 / 0.99, 1])


def evidence(n_jobs=100, n_runs=6, *, is_right=True):
    """Rows of jobs of two shapes: noise for the trees, and evidence that is right for nine jobs in ten, or luck."""
    rng = np.random.default_rng(3)
    labels = np.repeat(rng.integers(0, 2, n_jobs), n_runs)
    told = np.where(np.repeat(rng.random(n_jobs), n_runs) < (0.9 if is_right else 0.5), labels, 1 - labels)
    frame = pd.DataFrame({"noise": rng.normal(size=len(labels)), "shape_ratio_0": np.where(told == 0, 0.99, 0.01)})
    frame["shape_ratio_1"] = 1 - frame["shape_ratio_0"]
    return frame, labels, np.repeat(np.arange(n_jobs), n_runs)


@pytest.mark.parametrize("is_right", [True, False])
def test_a_job_s_own_runs_count_as_much_as_they_were_right_for_jobs_that_the_trees_had_not_seen(is_right):
    frame, labels, jobs = evidence(is_right=is_right)
    found = fit_classifier(rows_of(frame, labels, 2, jobs), ["noise"], "ratio", n_rounds=20, seed=0)
    assert found.evidence == (("shape_ratio_0", "shape_ratio_1"),)
    accuracy = np.mean(found.predict_proba(frame).argmax(axis=1) == labels)
    if is_right:
        # the power makes 0.99 as sure as it is right: log(0.9 / 0.1) = power · log(0.99 / 0.01)
        assert found.evidence_powers[1] == pytest.approx(np.log(9) / np.log(99), abs=0.15)
        assert accuracy > 0.85
    else:
        assert found.evidence_powers[1] < 0.1


def test_lightgbm_as_text_predicts_the_same_bits():
    frame, labels, jobs = evidence()
    found = fit_classifier(rows_of(frame, labels * 2, 4, jobs), ["noise"], "ratio", n_rounds=10, seed=0)
    assert isinstance(found, LightGbm)
    again = LightGbm.from_texts(*found.to_texts())
    assert (again.predict_proba(frame) == found.predict_proba(frame)).all()
    assert again.booster.num_model_per_iteration() == 4  # one tree a shape and round, also of those never seen


@pytest.mark.parametrize(("trees", "rest"), [("", "{}"), ("tree", '{"columns": ["a"], "present": [true, true]}')])
def test_a_text_that_is_no_classifier_is_refused(trees, rest):
    with pytest.raises((BadInput, ValueError, KeyError, TypeError)):
        LightGbm.from_texts(trees, rest)


def test_features_with_names_that_lightgbm_refuses_are_taken():
    frame, labels = case()
    odd = frame.rename(columns={"load": 'op_{"a": [b]}', "noise": "op two"})
    assert np.mean(fitted(odd, labels, 3).predict_proba(odd).argmax(axis=1) == labels) > 0.85


def test_a_feature_that_is_missing_for_the_first_time_counts_as_its_median_and_not_as_zero():
    frame = pd.DataFrame({"x": np.r_[np.linspace(100, 200, 200), np.linspace(201, 400, 600)]})
    found = fitted(frame, np.r_[np.zeros(200), np.ones(600)].astype(int), 2)
    assert found.predict_proba(pd.DataFrame({"x": [np.nan]})).argmax() == 1
    assert found.predict_proba(pd.DataFrame({"x": [0.0]})).argmax() == 0


def test_the_feature_that_tells_is_the_most_important():
    found = fitted(*case(), 3).importances()
    assert found["feature"].tolist() == ["load", "noise"]
    assert found["importance"].sum() == pytest.approx(1)
