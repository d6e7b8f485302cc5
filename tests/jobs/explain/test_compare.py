"""Two shapes side by side, and the points of a beeswarm: worked out by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.explain.compare import beeswarm_points, compare_shapes, explain_push, push
from tasks.jobs.explain.contributions import Contributions

NAMES = ("load_mean", "op_WINDOW")
# two runs, two features, three shapes
VALUES = np.array([[[0.0, 1.0, 3.0], [1.0, 0.5, 0.0]], [[2.0, 0.0, 0.0], [0.0, 0.0, -1.0]]])
FRAME = pd.DataFrame({"op_WINDOW": [1.0, 0.0], "load_mean": [0.9, 0.3]})


def parts(values=VALUES, base=(0.1, 0.2, 0.4)):
    return Contributions(values, np.tile(base, (len(values), 1)), NAMES)


def test_what_pushes_a_run_from_one_shape_to_another_worked_out_by_hand():
    assert push(parts(), 0, 2).tolist() == [[3.0, -1.0], [-2.0, -1.0]]
    found = explain_push(parts(), 1, FRAME, 0, 2)
    assert found["feature"].tolist() == ["load_mean", "op_WINDOW"]
    assert found["value"].tolist() == [0.3, 0.0]
    assert found["push"].tolist() == [-2.0, -1.0]
    assert found["odds"].tolist() == pytest.approx([math.exp(-2), math.exp(-1)])


def test_pushes_add_up_to_the_odds_between_the_two_shapes():
    raw, base = parts().raw, parts().base
    odds = base[:, 2] - base[:, 0] + push(parts(), 0, 2).sum(axis=1)
    assert odds.tolist() == pytest.approx((raw[:, 2] - raw[:, 0]).tolist())
    assert push(parts(), 2, 0).tolist() == (-push(parts(), 0, 2)).tolist()


def test_the_table_of_two_shapes_worked_out_by_hand():
    values = np.concatenate([VALUES, VALUES[:1] * 3])
    frame = pd.concat([FRAME, FRAME[:1] * 2])
    found = compare_shapes(parts(values), frame, [2, 0, 2], 0, 2).set_index("feature")
    assert found.index.tolist() == ["load_mean", "op_WINDOW"]
    assert found.loc["load_mean"].to_dict() == {
        "push_in_a": -2.0,
        "push_in_b": 6.0,
        "difference": 8.0,
        "median_in_a": 0.3,
        "median_in_b": pytest.approx(1.35),
        "n_a": 1,
        "n_b": 2,
    }
    assert found.loc["op_WINDOW", ["push_in_a", "push_in_b"]].tolist() == [-1.0, -2.0]


def test_a_shape_without_runs_has_no_means():
    found = compare_shapes(parts(), FRAME, [0, 0], 0, 1)
    assert found["push_in_b"].isna().all()
    assert found["n_b"].tolist() == [0, 0]


def test_shapes_that_cannot_be_compared_are_refused():
    for a, b in ((1, 1), (0, 3), (-1, 0)):
        with pytest.raises(ValueError, match="expected two different ones from 0 to 2"):
            push(parts(), a, b)
    with pytest.raises(ValueError, match="shapes 0 and 1: the model was not trained on both"):
        push(parts(base=(0.1, -np.inf, 0.2)), 0, 1)


def many(n=500):
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"load_mean": rng.uniform(size=n), "op_WINDOW": (rng.uniform(size=n) < 0.02).astype(float)})
    values = np.stack([np.stack([frame["load_mean"], 3 * frame["load_mean"] - 1], axis=1)] * 3, axis=2)
    return Contributions(values, np.zeros((n, 3)), NAMES), frame


def test_points_have_the_most_important_feature_first_and_the_same_runs_in_each():
    found, frame = many()
    points = beeswarm_points(found, frame, 1, np.random.default_rng(0), most_runs=100)
    assert points.groupby("rank")["feature"].first().tolist() == ["op_WINDOW", "load_mean"]
    runs = [points.loc[points["rank"] == rank, "run"].tolist() for rank in (0, 1)]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 100
    load = points[points["feature"] == "load_mean"]
    assert load["value"].tolist() == frame["load_mean"].iloc[load["run"]].tolist()
    assert load["contribution"].tolist() == load["value"].tolist()


def test_colours_run_from_the_5th_to_the_95th_percentile_and_a_rare_value_still_shows():
    found, frame = many()
    points = beeswarm_points(found, frame, 1, np.random.default_rng(0))
    load = points[points["feature"] == "load_mean"]
    assert (load["scaled"] == 0).sum() == 25
    assert (load["scaled"] == 1).sum() == 25
    window = points[points["feature"] == "op_WINDOW"]
    assert window["scaled"].tolist() == window["value"].tolist()


def test_unknown_and_constant_values_have_a_colour_of_their_own():
    frame = pd.DataFrame({"load_mean": [np.nan, 0.5], "op_WINDOW": [np.nan, np.nan]})
    points = beeswarm_points(parts(), frame, 0, np.random.default_rng(0))
    assert points.loc[points["feature"] == "load_mean", "scaled"].tolist() == [pytest.approx(np.nan, nan_ok=True), 0.5]
    assert points.loc[points["feature"] == "op_WINDOW", "scaled"].isna().all()


def test_at_most_so_many_features_are_shown():
    found, frame = many()
    assert beeswarm_points(found, frame, 0, np.random.default_rng(0), most_features=1)["feature"].unique().tolist() == [
        "op_WINDOW"
    ]


def test_points_of_a_shape_that_the_model_does_not_know_are_refused():
    for shape in (1, 3, -1):
        with pytest.raises(ValueError, match=f"shape {shape}: the model was not trained on it"):
            beeswarm_points(parts(base=(0.1, -np.inf, 0.2)), FRAME, shape, np.random.default_rng(0))
