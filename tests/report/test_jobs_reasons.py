"""Figures of reasons and changes: contributions that add up, which features are shown, and who moves where."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadSetting
from tasks.jobs.control.pairs import Directions
from tasks.jobs.explain.contributions import Contributions, log_odds
from tasks.jobs.explain.shape_reasons import Reasons, ShapeReasons, ends_of
from tasks.jobs.predict.classifier import LEAST
from tasks.report.jobs_reasons import (
    N_FEATURES,
    leading_factors,
    migration_figure,
    pairs_figure,
    shape_reason_figures,
    swarm_figure,
    two_shapes_figure,
)

EVIDENCE = (
    ("shape_ratio_0", "shape_ratio_1", "shape_ratio_2"),
    ("recent_shape_ratio_0", "recent_shape_ratio_1", "recent_shape_ratio_2"),
)
NAMES = ("input_bytes", *EVIDENCE[0], "n_before", *EVIDENCE[1])


@pytest.fixture
def reasons():
    rng = np.random.default_rng(4)
    n = 50
    parts = Contributions(rng.normal(size=(n, len(NAMES), 3)), np.tile([0.1, 0.2, 0.3], (n, 1)), NAMES)
    features = pd.DataFrame(rng.uniform(0.1, 1, size=(n, len(NAMES))), columns=list(NAMES))
    features.loc[0, list(EVIDENCE[0])] = [0.0, 1.0, 0.0]
    features.loc[1, list(EVIDENCE[0])] = np.nan
    return ShapeReasons("model", "ratio", parts, features, EVIDENCE)


def test_what_is_shown_of_a_shape_adds_up_to_its_log_odds(reasons):
    swarm = reasons.swarm(2)
    expected = log_odds(reasons.parts.raw, [2]) - log_odds(reasons.parts.base, [2])
    assert swarm.added.sum(axis=1) == pytest.approx(expected, abs=1e-3)
    assert swarm.added.shape == (50, 4) == (50, len(swarm.words))
    assert swarm.words[-2:] == [
        "how well the job's earlier runs fit shape 2",
        "how well the job's last runs fit shape 2",
    ]


def test_what_tells_two_shapes_apart_adds_up_and_changes_its_sign_with_their_order(reasons):
    two = reasons.two(0, 2)
    raw, base = reasons.parts.raw, reasons.parts.base
    expected = (raw[:, 0] - base[:, 0]) - (raw[:, 2] - base[:, 2])
    assert two.added.sum(axis=1) == pytest.approx(expected)
    assert np.allclose(reasons.two(2, 0).added, -two.added)


def test_the_value_of_evidence_is_that_of_the_shape_asked_for(reasons):
    earlier = reasons.swarm(1).of_feature[:, -2]
    assert earlier[0] == 0.0  # log of 1
    assert earlier[1] == pytest.approx(np.log(1 / 3))  # unknown fits all alike
    assert reasons.swarm(0).of_feature[0, -2] == pytest.approx(np.log(LEAST))
    two = reasons.two(1, 0)
    assert two.of_feature[0, -2] == pytest.approx(-np.log(LEAST))


def test_shapes_that_the_model_does_not_know_are_refused(reasons):
    with pytest.raises(BadSetting, match=r"shape 3: the model model knows the ratio shapes 0, 1, 2"):
        reasons.swarm(3)
    with pytest.raises(BadSetting, match="two different ones"):
        reasons.two(1, 1)
    reasons.parts.base[:, 0] = -np.inf  # no training run had it
    assert reasons.ends == (1, 2)
    with pytest.raises(BadSetting, match=r"knows the ratio shapes 1, 2"):
        reasons.swarm(0)


def test_one_shape_has_one_figure_and_two_have_three(reasons):
    assert [figure.name for figure in shape_reason_figures(reasons, [1])] == ["beeswarm-ratio-1"]
    names = [figure.name for figure in shape_reason_figures(reasons, [0, 2])]
    assert names == ["beeswarm-ratio-0", "beeswarm-ratio-2", "two-shapes-ratio-0-2"]


def swarm(p, n=200):
    of_feature = np.random.default_rng(1).normal(size=(n, p))
    found = Reasons(of_feature * np.arange(p), of_feature, [f"feature {at}" for at in range(p)])
    return swarm_figure(found, "shape 6", "swarm")


def test_the_feature_that_adds_most_is_on_top_and_one_that_adds_nothing_is_left_out():
    assert list(dict.fromkeys(swarm(3).chart.args[0]["feature"])) == ["feature 2", "feature 1"]
    assert swarm(30).evidence == f"n = 200 runs; {N_FEATURES} of 30 features"
    assert swarm(2, n=0).chart is None


def test_two_shapes_are_compared_at_the_low_and_the_high_third_of_each_feature():
    of_feature = np.column_stack([np.arange(9.0), np.full(9, 1.0), [0, 0, 0, 0, 0, 0, 0, 0, 1.0]])
    added = np.column_stack([np.arange(9.0), np.arange(9.0), [0, 0, 0, 0, 0, 0, 0, 0, 9.0]])
    found = Reasons(added, of_feature, ["ramp", "constant", "flag"])
    ends = ends_of(found)
    assert ends[0] == pytest.approx([1.5, 6.5], abs=0.6)
    assert np.isnan(ends[1]).all()
    assert ends[2].tolist() == [0, 9]
    shown = two_shapes_figure(found, "shape 0", "shape 2", "two").chart.args[0]
    assert list(dict.fromkeys(shown["feature"])) == ["flag", "ramp"]


@pytest.mark.parametrize("n", [0, 4])
def test_features_that_never_differ_give_no_comparison(n):
    assert two_shapes_figure(Reasons(np.zeros((n, 1)), np.ones((n, 1)), ["a"]), "0", "1", "t").chart is None


def test_reasons_lead_from_what_is_usual_to_the_prediction_largest_first():
    assert list(leading_factors({"a": 1.5, "b": 0.2, "c": 4.0, "d": 1.001}, 1.2).values()) == [0.2, 4.0, 1.5]
    assert leading_factors({"a": 2.0}, 3.0) == {"a": 2.0, "all else": 1.5}


def test_the_move_that_most_make_is_told_with_its_share_of_the_shape_before():
    found = migration_figure(np.array([[50, 0, 2], [30, 70, 0], [0, 10, 0]]), "no spare tokens")
    assert "Most often 1 → 0: 30.0 % of shape 1" in found.words  # 30 runs, though all of shape 2 go to 1
    assert "25.9 % moved" in found.evidence


def test_pairs_are_drawn_as_factors_of_the_log_ratios_that_were_compared():
    directions = Directions(n=3, share=2 / 3, low=0.2, high=0.9, n_in_band=1)
    score = SimpleNamespace(directions=directions)
    logs = {"measured": np.log([2.0, 1, 0.5, 1.01]), "predicted": np.log([1.5, 1, 1, 1])}
    measured = SimpleNamespace(score=score, **logs)
    found = pairs_figure(measured, "no_spare")
    assert found.chart.args[0].to_numpy() == pytest.approx(np.array([[1.5, 2], [1, 1], [1, 0.5], [1, 1.01]]))
    assert "The direction was right for 66.7 % (20.0 % to 90.0 %)." in found.words
    score.directions = None
    assert "right for not known" in pairs_figure(measured, "x").words
    assert pairs_figure(None, "x").chart is None
