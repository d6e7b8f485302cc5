"""Contributions: additive, in their places, true to what the model was taught; odds and jobs worked out by hand."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tasks.jobs.explain.contributions import (
    Contributions,
    against_usual,
    by_family,
    contributions,
    family_of,
    log_odds,
    push,
    towards,
)
from tasks.jobs.predict.features import FEATURES

SMALL = {"num_leaves": 8, "learning_rate": 0.2, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, "seed": 1}
ROUNDS = 20


def features(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["load_mean", "input_bytes", "queue_length"])
    frame.loc[::7, "queue_length"] = np.nan
    return frame


def train(frame, target, **params):
    return lgb.train(SMALL | params, lgb.Dataset(frame.to_numpy(), np.asarray(target, dtype=float)), ROUNDS)


def take_apart(booster, frame, k):
    return contributions(booster, frame.to_numpy(), tuple(frame), k)


def three_classes(frame):
    return np.digitize(frame["load_mean"], [-0.5, 0.5])


def test_the_parts_of_three_classes_add_up_to_the_raw_scores():
    frame = features()
    booster = train(frame, three_classes(frame), objective="multiclass", num_class=3)
    parts = take_apart(booster, frame, 3)
    assert parts.base.shape == (400, 3)
    assert parts.raw == pytest.approx(booster.predict(frame.to_numpy(), raw_score=True), abs=1e-9)


def test_the_parts_of_a_regression_add_up_to_the_prediction():
    frame = features()
    booster = train(frame, frame["load_mean"] * 2 + frame["input_bytes"], objective="regression")
    assert take_apart(booster, frame, 1).raw[:, 0] == pytest.approx(booster.predict(frame.to_numpy()), abs=1e-9)


def random_parts(k, n=50, p=4, size=1.0, seed=3):
    rng = np.random.default_rng(seed)
    base = np.broadcast_to(rng.normal(size=k), (n, k)).copy()
    return Contributions(size * rng.normal(size=(n, p, k)), base, tuple(f"op_{i}" for i in range(p)))


def test_two_shapes_worked_out_by_hand():
    """Scores 1 and 3 over bases 0.5 and 0: log-odds of the second start at -0.5 and end at 2."""
    parts = Contributions(np.array([[[0.25, 2.0], [0.25, 1.0]]]), np.array([[0.5, 0.0]]), ("a", "b"))
    second = towards(parts, [1])
    assert second.base == pytest.approx(-0.5)
    assert second.single[0].tolist() == pytest.approx([1.75, 0.75])
    assert second.raw[0, 0] == pytest.approx(2.0)


def test_the_odds_are_those_of_the_probabilities():
    raw = random_parts(5).raw
    probabilities = softmax(raw, axis=1)
    asked = probabilities[:, [1, 4]].sum(axis=1)
    assert log_odds(raw, [1, 4]) == pytest.approx(np.log(asked / (1 - asked)))


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_parts_add_up_to_the_log_odds_of_several_shapes(size):
    parts = random_parts(6, size=size)
    found = towards(parts, [4, 5])
    assert found.raw[:, 0] == pytest.approx(log_odds(parts.raw, [4, 5]), abs=1e-3)


def test_what_pushes_all_shapes_alike_changes_no_odds():
    parts = random_parts(4)
    even = Contributions(np.full((50, 1, 4), 2.0), parts.base, ("op_0",))
    assert towards(even, [2, 3]).added == pytest.approx(0.0)


def test_shapes_that_the_model_never_saw_take_no_part():
    parts = random_parts(4)
    more_base = np.column_stack([parts.base, np.full(50, -np.inf)])
    more = Contributions(np.concatenate([parts.added, np.zeros((50, 4, 1))], axis=2), more_base, parts.features)
    assert towards(more, [3, 4]).added == pytest.approx(towards(parts, [3]).added)


NAMES = ("input_bytes", "op_WINDOW")


def one_score(values, base=0.5):
    values = np.asarray(values, dtype=float)
    return Contributions(values[:, :, None], np.full((len(values), 1), base), NAMES)


def test_a_run_and_its_usual_ones_worked_out_by_hand():
    usual = one_score([[1.0, 3.0], [3.0, 3.0], [3.0, 9.0], [9.0, 9.0]])
    parts = one_score([[6.0, 3.0]])
    found = against_usual(parts, usual, [0], [3])
    assert found.single.tolist() == [[3.0, 0.0]]  # the plan is that of all runs of the job
    assert found.base.tolist() == [[0.5 + 6.0]]
    assert found.raw == pytest.approx(parts.raw)


def test_each_run_can_have_its_own_stretch_of_usual_runs():
    usual = one_score([[1.0, 0.0], [3.0, 0.0], [5.0, 6.0], [7.0, 0.0]])
    found = against_usual(one_score([[6.0, 3.0], [6.0, 3.0]]), usual, [0, 1], [3, 3])
    assert found.single == pytest.approx(np.array([[6.0 - 3.0, 3.0 - 0.0], [6.0 - 5.0, 3.0 - 0.0]]))
    assert found.base[:, 0] == pytest.approx([0.5 + 3.0, 0.5 + 5.0])


def test_one_run_with_a_huge_input_does_not_make_a_usual_one_seem_small():
    usual = one_score([[1.0, 0.0], [1.0, 0.0], [9.0, 0.0]])
    assert against_usual(one_score([[1.0, 0.0]]), usual, [0], [3]).single.tolist() == [[0.0, 0.0]]


def test_a_run_with_two_earlier_runs_or_none_is_left_as_it_is():
    parts = one_score([[6.0, 3.0], [6.0, 3.0]])
    for usual, first, n in (
        (one_score([[1.0, 1.0]] * 3), [0, -1], [2, 0]),
        (one_score(np.empty((0, 2))), [0, 0], [0, 0]),
    ):
        found = against_usual(parts, usual, first, n)
        assert found.added.tolist() == parts.added.tolist()
        assert found.base.tolist() == parts.base.tolist()


OF_SHAPES = ("load_mean", "op_WINDOW")
# two runs, two features, three shapes
VALUES = np.array([[[0.0, 1.0, 3.0], [1.0, 0.5, 0.0]], [[2.0, 0.0, 0.0], [0.0, 0.0, -1.0]]])


def parts(values=VALUES, base=(0.1, 0.2, 0.4)):
    return Contributions(values, np.tile(base, (len(values), 1)), OF_SHAPES)


def test_what_pushes_a_run_from_one_shape_to_another_worked_out_by_hand():
    assert push(parts(), 0, 2).tolist() == [[3.0, -1.0], [-2.0, -1.0]]


@pytest.mark.parametrize("pattern", [name for name in FEATURES if not name.startswith("own_")])
def test_every_feature_of_the_catalogue_has_a_family(pattern):
    name = (
        pattern.replace("<sku>", "gen4")
        .replace("<operator>", "HASH_JOIN")
        .replace("<k>", "3")
        .replace("<peers>", "job")
    )
    assert family_of(name) != "other"


OF_FAMILY = {
    "input": "input_ratio estimated_cost input_usual", "tokens": "requested_tokens peak_tokens_sd",
    "spare tokens": "spare_tokens_mean sku_free_tokens_gen3", "load": "sku_load_sd_gen3 load_mean",
    "SKU": "offered_gen5 vertex_share_gen5_mean", "plan": "n_vertices_mean op_WINDOW",
    "memory": "requested_memory_bytes temp_bytes_mean", "requested time": "requested_runtime_s",
    "history": "n_before shape_ratio_3 job_median10 log_last request_limit_share user_request_since",
    "queue": "wait_mean_s", "other": "colour",
}  # fmt: skip


@pytest.mark.parametrize(("family", "names"), OF_FAMILY.items())
def test_a_feature_belongs_to(family, names):
    assert {family_of(name) for name in names.split()} == {family}


def test_features_of_one_family_are_summed_and_nothing_is_lost():
    values = np.array([[[1.0], [2.0], [4.0], [-8.0]]])
    parts = Contributions(values, np.zeros((1, 1)), ("input_bytes", "load_sd", "input_ratio", "load_mean"))
    sums, families = by_family(parts)
    assert families == ("input", "load")
    assert sums.tolist() == [[5.0, -6.0]]
