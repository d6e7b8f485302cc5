"""The spread around the expected runtime: by hand without splits, and on a case with known truth."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.predict.predictor_params import SpreadParams
from tasks.jobs.predict.spread import fit_spread

PARAMS = SpreadParams(n_trees=8, num_leaves=15, min_leaf_runs=15, n_bins=80)
PLAIN = PARAMS.model_copy(update={"smoothing_bins": 0.0, "overall_share": 0.0})


def constant(n):
    return pd.DataFrame({"x": np.zeros(n)})


def test_without_anything_to_split_on_each_row_gets_the_shares_of_all_runs():
    residuals = np.array([-1.0, 1.0, 1.0, 1.0] * 20)
    spread = fit_spread(constant(80), residuals, PLAIN)
    masses = spread.masses(constant(2), PLAIN)
    low, high = spread.grid.index([-1.0, 1.0])
    assert masses[:, [low, high]] == pytest.approx(np.array([[0.25, 0.75]] * 2))
    assert masses.sum(axis=1) == pytest.approx([1, 1])


def test_the_share_of_all_runs_makes_nothing_impossible():
    rng = np.random.default_rng(0)
    features = pd.DataFrame({"x": rng.normal(size=400)})
    spread = fit_spread(features, np.where(features["x"] > 0, 1.0, -1.0) + rng.normal(0, 0.01, 400), PARAMS)
    asked = pd.DataFrame({"x": [2.0]})
    without = spread.masses(asked, PLAIN)
    assert (without == 0).any()
    found = spread.masses(asked, PARAMS.model_copy(update={"smoothing_bins": 0.0}))
    assert (found > 0).all()
    assert found == pytest.approx(0.99 * without + 0.01 * spread.overall)


def test_wide_and_narrow_runs_are_told_apart_by_their_feature():
    rng = np.random.default_rng(1)
    is_wide = rng.random(1500) < 0.5
    features = pd.DataFrame({"x": np.where(is_wide, 1.0, -1.0), "other": rng.normal(size=1500)})
    # medians differ by a little: a forest that splits on means sees spread only through them
    residuals = rng.normal(np.where(is_wide, 0.05, 0.0), np.where(is_wide, 0.6, 0.05))
    spread = fit_spread(features, residuals, PARAMS)
    masses = spread.masses(pd.DataFrame({"x": [1.0, -1.0], "other": [0.0, 0.0]}), PARAMS)
    middles = (spread.grid.log_edges[1:] + spread.grid.log_edges[:-1]) / 2
    mean = masses @ middles
    sd = np.sqrt((masses * (middles - mean[:, None]) ** 2).sum(axis=1))
    assert sd[0] == pytest.approx(0.6, rel=0.2)
    assert sd[1] < 0.3


def test_rows_sum_to_1_and_the_same_inputs_give_the_same_bits():
    rng = np.random.default_rng(2)
    features, residuals = pd.DataFrame(rng.normal(size=(200, 3))), rng.normal(size=200)
    one, other = (fit_spread(features, residuals, PARAMS).masses(features, PARAMS) for _ in range(2))
    assert one.sum(axis=1) == pytest.approx(np.ones(200))
    assert one.tobytes() == other.tobytes()


def test_a_row_is_predicted_alike_alone_and_among_others():
    rng = np.random.default_rng(3)
    features = pd.DataFrame(rng.normal(size=(200, 3)))
    spread = fit_spread(features, rng.normal(size=200), PARAMS)
    together = spread.masses(features, PARAMS)
    assert spread.masses(features[17:18], PARAMS) == pytest.approx(together[17:18])


@pytest.mark.parametrize("n", [1, 2, 50])
def test_residuals_that_are_all_the_same_stay_in_their_bin(n):
    features = pd.DataFrame({"x": np.arange(n, dtype=float)})
    spread = fit_spread(features, np.full(n, 0.3), PLAIN)
    assert spread.masses(features, PLAIN)[:, spread.grid.index(0.3)] == pytest.approx(np.ones(n))


def test_residuals_beyond_all_bins_count_in_the_outer_ones():
    residuals = np.array([-50.0, 50.0] * 20)
    masses = fit_spread(constant(40), residuals, PLAIN).masses(constant(1), PLAIN)
    assert masses[0, [0, -1]] == pytest.approx([0.5, 0.5])


def test_no_rows_have_no_masses():
    spread = fit_spread(constant(40), np.zeros(40), PARAMS)
    assert spread.masses(constant(0), PARAMS).shape == (0, 80)
