"""A change from the question to the answer, with a model whose effect is known; and what may be claimed of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.binned import Binned, Tails
from tasks.jobs.control.asking import parse_scenario
from tasks.jobs.control.claims import ALWAYS, make_claims
from tasks.jobs.control.outcomes import ShapeModel, assess
from tasks.jobs.control.pair_scores import score_pairs
from tasks.jobs.control.pairs import match_pairs
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.synthetic import SimulatedChange, simulate_pairs

PARAMS = WhatIfParams(n_resamples=200)
EDGES = np.linspace(0, 10, 101)
NARROW = np.where((EDGES[:-1] >= 0.9) & (EDGES[:-1] < 1.1), 1.0, 0.0)
WIDE = np.where(EDGES[:-1] < 2, 1.0, 0.0)
SHAPES = np.stack([NARROW / NARROW.sum(), WIDE / WIDE.sum()])
TABLE = pd.DataFrame({"p25_p75": [0.1, 1.0], "outlier_percent": [0.0, 0.0], "p95": [1.09, 1.9], "std": [0.06, 0.58]})
N = 40
MEDIANS = np.full(N, 10.0)
GROUPS = np.repeat([f"job-{number}" for number in range(10)], 4)


def frame():
    return pd.DataFrame(
        {
            "requested_tokens": np.full(N, 2.0),
            "spare_tokens_available": np.where(np.arange(N) < 30, 4.0, 0.0),
            "mean_tokens_mean": np.full(N, 3.0),
            "spare_tokens_mean": np.full(N, 1.0),
        }
    )


def classify(features):
    """Spare tokens make a run wide."""
    is_wide = features["spare_tokens_available"].to_numpy() > 0
    return np.column_stack([~is_wide, is_wide]).astype(float)


def predict(features):
    return Binned(EDGES, SHAPES, MEDIANS, "ratio", Tails(0.5), classify(features))


def assessed(scenario="no_spare", **more):
    return assess(
        parse_scenario(PARAMS, scenario=scenario), frame(), predict, GROUPS, MEDIANS, PARAMS,
        np.random.default_rng(1), **more,
    )  # fmt: skip


def test_without_spare_tokens_wide_runs_become_narrow_and_cost_fewer_tokens():
    found = assessed(models={"ratio": ShapeModel(classify, TABLE)})
    assert found.features == ["spare_tokens_available", "mean_tokens_mean", "spare_tokens_mean"]
    gap = found.changes.loc["gap_ratio"]
    assert gap["before"] == pytest.approx((30 * 1.0 + 10 * 0.1) / 40)
    assert gap["after"] == pytest.approx(0.1)
    assert gap["high"] < 0
    assert found.changes.loc["token_s", "before"] == pytest.approx(30, rel=0.01)  # 3 tokens for 10 s
    assert found.changes.loc["token_s", "after"] == pytest.approx(20, rel=0.01)
    moved = found.moves["ratio"]
    assert moved.runs.counts.tolist() == [[10, 0], [30, 0]]
    assert moved.groups.counts.tolist() == [[3, 0], [7, 0]]  # a job with two wide runs of four counts as narrow


def test_an_answer_says_which_rows_the_training_data_do_not_reach():
    training = frame().iloc[:30]
    found = assessed(training=training)
    assert found.support is not None
    assert found.support.share == 1  # spare tokens were never 0 there, nor were 2 in use on average
    assert assessed().support is None


def claims(**more):
    return make_claims(assessed(training=frame()).changes, PARAMS, **more)


def scored(predicted_from, **settings):
    made = simulate_pairs(SimulatedChange(**settings), np.random.default_rng(2))
    pairs = match_pairs(made.runs).of("no_spare")
    told = predicted_from(made.log_effects[pairs["group_key"]].to_numpy())
    return score_pairs(pairs["log_ratio"], told, pairs["group_key"], PARAMS, np.random.default_rng(1))


def test_without_pairs_nothing_measured_is_claimed():
    found = claims(score=score_pairs([], [], [], PARAMS, np.random.default_rng(1)))
    assert found.cannot[0] == (
        "Nothing measured stands behind it: no run was done again with this change "
        "(no matched pair with a measured and a predicted change)."
    )
    assert not any(line.startswith("Measured") for line in found.can)
    assert set(ALWAYS) <= set(found.cannot)


def test_predicted_changes_are_claimed_with_their_interval_and_an_open_direction_is_called_open():
    found = claims()
    assert found.can[0].startswith(
        "Predicted: the 25th-75th gap of a run goes from 7.75 to 1 s on average, 95 % interval"
    )
    median = next(line for line in found.can if "median" in line)
    assert median.endswith("over 40 runs of 10 jobs; its direction is open.")


def test_good_predictions_are_claimed_and_bad_ones_stand_among_what_cannot_be():
    good = claims(score=scored(lambda effects: effects))
    assert any(line.startswith("The change of a single run is foretold better than by no change") for line in good.can)
    assert any("the direction was foretold right in 9" in line for line in good.can)
    bad = claims(score=scored(lambda effects: -effects))
    assert (
        "That it knows which runs change by how much: over the measured pairs it is worse than no change and "
        "worse than the mean change of other jobs." in bad.cannot
    )


def test_extrapolation_is_told_with_its_share_and_its_features():
    outcome = assessed(training=frame().iloc[:30])
    found = make_claims(outcome.changes, PARAMS, support=outcome.support)
    assert found.cannot[-1] == (
        "100.0 % of the 40 changed runs are extrapolated: 100.0 % lie outside the training range of a changed feature, "
        "most often by mean_tokens_mean, spare_tokens_mean, spare_tokens_available."
    )
    inside = replace(outcome.support, share=0.0)
    assert make_claims(outcome.changes, PARAMS, support=inside).cannot[-1] == ALWAYS[-1]
    still = replace(outcome.support, share=None, n_changed=0)
    assert "alters no feature" in make_claims(outcome.changes, PARAMS, support=still).cannot[-1]
