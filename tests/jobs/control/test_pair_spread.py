"""Change of the variation of jobs: measured over pairs, predicted by the mixture of their predictions."""

import numpy as np
import pytest

from tasks.jobs.control.pair_spread import SPREADS, score_spread, spread_changes, spread_of
from tasks.jobs.control.pairs import match_pairs
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.synthetic import SimulatedChange, simulate_pairs
from tasks.jobs.empirical import Empirical, gather_history

PARAMS = WhatIfParams(n_resamples=200)


def true_predictions(made, pairs, change, n_past=400):
    """The true distribution of each job before and after, as that of many past runs."""
    rng = np.random.default_rng(9)
    keys = list(made.log_medians.index)
    numbers = np.repeat(np.arange(len(keys)), n_past)
    noise = change.log_noise * rng.standard_normal(len(numbers))
    level = made.log_medians.to_numpy()[numbers]
    shifted = level + made.log_effects.to_numpy()[numbers] + change.noise_factor * noise
    group = np.array([keys.index(key) for key in pairs["group_key"]])
    return (Empirical(gather_history(np.exp(times), numbers), group) for times in (level + noise, shifted))


def simulated(change):
    made = simulate_pairs(change, np.random.default_rng(3))
    pairs = match_pairs(made.runs).of("no_spare")
    return pairs, *true_predictions(made, pairs, change)


def test_half_the_noise_is_measured_and_predicted_as_a_quarter_of_the_log_variance():
    change = SimulatedChange(n_groups=10, n_pairs=200, log_effect=0, effect_sd=0, log_noise=0.4, noise_factor=0.5)
    found = spread_changes(*simulated(change), PARAMS)
    assert found.frame["n_pairs"].tolist() == [200] * 10
    assert found.frame["measured_log_variance"].mean() == pytest.approx(np.log(0.25), abs=0.1)
    assert found.frame["predicted_log_variance"].mean() == pytest.approx(np.log(0.25), abs=0.1)
    assert found.frame["predicted_gap"].mean() == pytest.approx(np.log(0.5), abs=0.1)


def test_a_factor_moves_the_percentile_by_it_and_leaves_the_log_variance():
    change = SimulatedChange(n_groups=10, n_pairs=100, log_effect=1.0, effect_sd=0, log_noise=0.2)
    found = spread_changes(*simulated(change), PARAMS)
    assert found.frame["predicted_p95"].tolist() == pytest.approx([1.0] * 10, abs=0.01)
    assert found.frame["predicted_variance"].tolist() == pytest.approx([2.0] * 10, abs=0.01)
    assert found.frame["predicted_log_variance"].tolist() == pytest.approx([0.0] * 10, abs=0.01)
    assert found.frame["measured_p95"].mean() == pytest.approx(1.0, abs=0.05)


def test_spreads_of_a_job_worked_out_by_hand():
    made = simulate_pairs(SimulatedChange(n_groups=1, n_pairs=5), np.random.default_rng(3))
    pairs = match_pairs(made.runs).of("no_spare").assign(before_s=[1.0, 2, 3, 4, 10], after_s=[2.0, 2, 2, 3, 5])
    one = Empirical(gather_history([1.0, 2, 3, 4, 10], [0] * 5), np.zeros(5, dtype=int))
    two = Empirical(gather_history([2.0, 2, 2, 3, 5], [0] * 5), np.zeros(5, dtype=int))
    row = spread_changes(pairs, one, two, PARAMS).frame.iloc[0]
    for what in ("measured", "predicted"):
        assert row[f"{what}_p95"] == pytest.approx(np.log(5 / 10))
        assert row[f"{what}_variance"] == pytest.approx(np.log(np.var([2, 2, 2, 3, 5]) / np.var([1, 2, 3, 4, 10])))
        assert row[f"{what}_gap"] == pytest.approx(np.log((3 - 2) / (4 - 2)))


def test_a_spread_of_zero_has_no_ratio_and_is_left_out_of_the_score():
    made = simulate_pairs(SimulatedChange(n_groups=2, n_pairs=5), np.random.default_rng(3))
    pairs = match_pairs(made.runs).of("no_spare")
    pairs.loc[pairs["group_key"] == "job-000", "before_s"] = 7.0
    flat = Empirical(gather_history([1.0, 2.0], [0, 0]), np.zeros(10, dtype=int))
    found = spread_changes(pairs, flat, flat, PARAMS)
    assert np.isnan(found.frame.loc["job-000", "measured_variance"])
    scores = score_spread(found, PARAMS, np.random.default_rng(1))
    assert (scores["variance"].n, scores["p95"].n) == (1, 2)


def test_the_true_change_of_the_percentile_of_each_job_is_scored_well():
    change = SimulatedChange(n_groups=30, n_pairs=40, effect_sd=0.6, log_noise=0.2)
    scores = score_spread(spread_changes(*simulated(change), PARAMS), PARAMS, np.random.default_rng(1))
    assert set(scores) == set(SPREADS)
    assert scores["p95"].n_groups == 30
    assert scores["p95"].versus_no_change.high < 0
    assert scores["p95"].correlation > 0.9


def test_jobs_with_few_pairs_are_left_out_and_counted_and_no_job_is_a_reason():
    pairs, before, after = simulated(SimulatedChange(n_groups=3, n_pairs=4))
    found = spread_changes(pairs, before, after, PARAMS)
    assert (found.n_groups_left_out, found.reason) == (3, "no job has 5 pairs")
    scores = score_spread(found, PARAMS, np.random.default_rng(1))
    assert {score.reason for score in scores.values()} == {"no job has 5 pairs"}
    nothing = np.empty(0, dtype=np.int64)
    none = spread_changes(pairs.iloc[:0], before.rows(nothing), after.rows(nothing), PARAMS)
    assert (none.n_groups_left_out, none.reason) == (0, "no job has 5 pairs")


def test_predictions_of_other_runs_are_refused():
    pairs, before, after = simulated(SimulatedChange(n_groups=3, n_pairs=4))
    with pytest.raises(ValueError, match="pairs: 11, with predictions of 12 and 12"):
        spread_changes(pairs.iloc[:11], before, after, PARAMS)


def test_values_of_unequal_weight_count_by_their_weight_in_any_order():
    # 1 with weight 0.7 and 9 with weight 0.3: the quartiles are 1 and 9, the variance 0.21 * 8²
    found = spread_of(np.array([9.0, 1.0]), np.array([0.3, 0.7]))
    assert (found["gap"], found["p95"]) == (8, 9)
    assert found["variance"] == pytest.approx(0.21 * 64)
    assert found["log_variance"] == pytest.approx(0.21 * np.log(9) ** 2)
    assert spread_of(np.array([20.0, 1.0, 5.0]), np.array([0.1, 0.5, 0.4]))["gap"] == 4
