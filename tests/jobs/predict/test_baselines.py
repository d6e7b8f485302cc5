"""What a predictor must beat, by hand: history, one shape for all, a forest, the paper's shapes."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.binned import Tails
from tasks.jobs.pmf import Bins
from tasks.jobs.predict.baselines import (
    forest_prediction,
    global_prediction,
    history_prediction,
    own_counts,
    predict_by_shapes,
)
from tasks.jobs.predict.earlier import earlier_runs
from tasks.jobs.predict.peers import histories
from tasks.jobs.predict.pool import N_LEVELS
from tasks.jobs.predict.predictor import told_as
from tasks.jobs.shapes import ShapeSet


def history_of(rows, runs, stand_in_s):
    known = histories(rows, runs)
    return told_as(history_prediction(known, "job", np.tile(np.log(stand_in_s), (len(rows), 1))))


def test_history_is_the_runs_of_the_job_that_had_ended_before(log_of):
    runs = log_of([1.0, 50.0, 3.0, 5.0, 7.0], ["a", "b", "a", "a", "a"])
    told = history_of(runs, runs, np.full(N_LEVELS, 9.0))
    assert told.quantile(0.5) == pytest.approx([9, 9, 1, np.sqrt(3), 3], rel=0.03)  # logs are interpolated
    assert told.quantile(0.99)[2:] == pytest.approx([1, 3, 5])


def test_a_run_that_has_not_ended_yet_is_no_history(log_of):
    runs = log_of([1.0, 600.0, 2.0])  # the second is still going on when the third begins
    assert history_of(runs[2:], runs, np.ones(N_LEVELS)).quantile(0.99) == pytest.approx([1])


def test_quantiles_of_all_runs_stand_in_for_a_job_never_seen(log_of):
    runs = log_of([1.0, 2.0], ["a", "b"])
    told = history_of(runs, runs, np.arange(1.0, N_LEVELS + 1))
    assert told.quantile(0.5) == pytest.approx([50, 50])


def test_one_shape_is_stretched_to_the_median_of_each_job(log_of):
    runs = log_of([1.0, 2.0])
    ratios = np.linspace(0.5, 1.5, 2001)
    told = global_prediction(earlier_runs(runs, runs), ratios, np.array([10.0, 40.0]))
    assert told.quantile(0.5) == pytest.approx([10, 40], rel=0.01)
    assert told.quantile(0.25) == pytest.approx([7.5, 30], rel=0.01)


def forest(features, runtime_s, asked):
    return forest_prediction(features, runtime_s, asked, n_trees=20, seed=0)


def test_the_forest_learns_a_step_and_gives_one_sure_value():
    x = np.linspace(-1, 1, 200)
    features = pd.DataFrame({"x": x, "unknown": np.nan})
    told = forest(features, np.where(x > 0, 9.0, 3.0), pd.DataFrame({"x": [-0.5, 0.5], "unknown": 0.0}))
    assert told.quantile(0.05) == pytest.approx([3, 9], abs=0.01)
    assert (told.quantile(0.05) == told.quantile(0.95)).all()
    assert told.crps(np.array([4.0, 9.0])) == pytest.approx([1, 0], abs=0.01)


def test_the_forest_takes_rows_with_unknown_values():
    features = pd.DataFrame({"x": [0.0, np.nan, 1.0, np.nan] * 20})
    told = forest(features, np.array([1.0, 5.0, 3.0, 5.0] * 20), features[:4])
    assert told.quantile(0.5) == pytest.approx([1, 5, 3, 5], abs=0.01)


def test_the_forest_without_a_feature_that_varies_gives_the_mean():
    features = pd.DataFrame({"x": np.ones(400)})
    told = forest(features, np.tile([1.0, 2.0, 3.0, 6.0], 100), features[:2])
    assert told.quantile(0.5) == pytest.approx([3, 3], rel=0.03)


def test_the_same_seed_gives_the_same_forest():
    rng = np.random.default_rng(0)
    features, runtime_s = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")), rng.random(60)
    one, other = (forest(features, runtime_s, features).quantile(0.5) for _ in range(2))
    assert one.tobytes() == other.tobytes()


RATIO = Bins(kind="ratio", low=0, high=2, n_bins=4)  # 0 s; below the median; up to twice; beyond
DELTA = Bins(kind="delta", low=-4, high=4, n_bins=4)  # below -4 s; -4 to 0; 0 to 4; above 4 s
CENTRES = np.array([[0, 0.75, 0.25, 0], [0, 0.25, 0.75, 0]])
P = np.array([[0.6, 0.4], [0.1, 0.9]])
MEDIANS = np.array([10.0, 100.0])


def predict(variant, bins=RATIO, *, own=None, prior=0.0, centres=CENTRES):
    shapes = ShapeSet(bins, centres, np.array([0.5, 0.5]), np.array([3, 1]), 0.0)
    return predict_by_shapes(variant, shapes, P, MEDIANS, Tails(), own=own, empty_bin_prior=prior)


def test_the_hard_label_is_the_most_probable_shape_alone():
    told = predict("hard")
    assert told.cdf(np.array([10.0, 100.0])) == pytest.approx([0.75, 0.25])
    assert told.cdf(np.array([20.0, 200.0])) == pytest.approx([1, 1])


def test_the_mixture_weighs_shapes_by_their_probability():
    # 0.6 · 0.75 + 0.4 · 0.25 and 0.1 · 0.75 + 0.9 · 0.25
    assert predict("soft").cdf(np.array([10.0, 100.0])) == pytest.approx([0.55, 0.3])


def test_leaning_counts_own_runs_against_twenty_of_the_mixture():
    own = np.array([[0.0, 0, 30, 0], [0, 0, 0, 0]])
    # (0 + 20 · 0.55) / 50; the second job has no run of its own
    assert predict("leaning", own=own).cdf(np.array([10.0, 100.0])) == pytest.approx([0.22, 0.3])


def test_as_own_runs_gather_the_prediction_becomes_theirs():
    own = np.array([[0.0, 1e6, 0, 0], [0, 1e6, 1e6, 0]])
    assert predict("leaning", own=own).cdf(np.array([10.0, 100.0])) == pytest.approx([1, 0.5], abs=1e-4)


def test_without_own_runs_leaning_is_the_mixture():
    at = np.array([7.0, 130.0])
    assert predict("leaning").cdf(at) == pytest.approx(predict("soft").cdf(at))
    assert predict("leaning", own=np.zeros((2, 4))).cdf(at) == pytest.approx(predict("soft").cdf(at))


@pytest.mark.parametrize("variant", ["hard", "soft", "leaning"])
def test_deltas_are_added_to_the_median(variant):
    told = predict(variant, DELTA, own=np.zeros((2, 4)))
    below = {"hard": [0.75, 0.25]}.get(variant, [0.55, 0.3])
    assert told.cdf(MEDIANS) == pytest.approx(below)
    assert told.cdf(MEDIANS - 4) == pytest.approx([0, 0])
    assert told.cdf(MEDIANS + 4) == pytest.approx([1, 1])


@pytest.mark.parametrize("variant", ["hard", "soft", "leaning"])
def test_runs_of_no_length_count_with_the_shortest_bin_of_a_ratio(variant):
    centres = np.array([[0.5, 0.25, 0.25, 0]] * 2)
    told = predict(variant, centres=centres, own=np.zeros((2, 4)))
    assert told.cdf(MEDIANS) == pytest.approx([0.75, 0.75])
    assert told.cdf(np.zeros(2)) == pytest.approx([0, 0])


def test_a_share_spread_over_all_bins_makes_nothing_impossible():
    told = predict("hard", prior=0.4)
    # 0.6 · 0.75 + 0.4 · 2/4: the bin of 0 s and that below the median
    assert told.cdf(np.array([10.0, 100.0])) == pytest.approx([0.65, 0.35])
    assert told.cdf(np.array([20.0, 200.0])) == pytest.approx([0.9, 0.9])
    assert np.isfinite(told.log_density(np.array([25.0, 250.0]))).all()


def test_the_last_runs_that_had_ended_are_counted_by_bin(log_of):
    runs = log_of([1.0] * 5, ["a", "a", "b", "a", "a"])
    found = own_counts(earlier_runs(runs, runs), np.array([0, 1, 2, -1, 0]), 3, most=2)
    assert found.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]]
