"""What speaks for shapes: contributions that still add up after the evidence of the own runs is shown as one."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadSetting
from tasks.jobs.explain.contributions import Contributions, log_odds
from tasks.jobs.predict.classifier import LEAST
from tasks.report.jobs_reasons import ShapeReasons, shape_reason_figures

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
    assert two.difference.sum(axis=1) == pytest.approx(expected)
    assert np.allclose(reasons.two(2, 0).difference, -two.difference)
    assert (two.one, two.other) == ("shape 0", "shape 2")


def test_the_value_of_evidence_is_that_of_the_shape_asked_for(reasons):
    earlier = reasons.swarm(1).of_feature[:, -2]
    assert earlier[0] == 0.0  # log of 1
    assert earlier[1] == pytest.approx(np.log(1 / 3))  # unknown fits all alike
    assert reasons.swarm(0).of_feature[0, -2] == pytest.approx(np.log(LEAST))
    two = reasons.two(1, 0)
    assert vars(two)["values"][0, -2] == pytest.approx(-np.log(LEAST))


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
