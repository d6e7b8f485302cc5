"""Scores of predicted changes: the truth wins, luck does not, and the simple answers stand beside it."""

import numpy as np
import pytest

from tasks.jobs.control.pair_scores import directions_of, mean_of_others, score_pairs
from tasks.jobs.control.pairs import match_pairs
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.synthetic import SimulatedChange, simulate_pairs

PARAMS = WhatIfParams(n_resamples=400)


def simulated(**settings):
    made = simulate_pairs(SimulatedChange(**settings), np.random.default_rng(2))
    pairs = match_pairs(made.runs).of("no_spare")
    return pairs, made.log_effects[pairs["group_key"]].to_numpy()


def test_directions_worked_out_by_hand():
    # three pairs with a direction: right, wrong, undecided; one in the band; one without a prediction
    found = directions_of(np.array([0.5, -0.5, 0.2, 0.01, 0.9]), np.array([0.1, 0.1, 0, 1, np.nan]), PARAMS)
    assert (found.n, found.n_right, found.n_in_band, found.n_undecided) == (3, 1, 1, 1)
    assert found.share == pytest.approx(1 / 3)
    # Wilson, z = 1.96: (1/3 + z²/6 ± z sqrt((2/9)/3 + z²/36)) / (1 + z²/3)
    z = 1.959964
    middle, half = 1 / 3 + z**2 / 6, z * np.sqrt((2 / 9) / 3 + z**2 / 36)
    assert (found.low, found.high) == pytest.approx(
        ((middle - half) / (1 + z**2 / 3), (middle + half) / (1 + z**2 / 3))
    )


def test_without_a_pair_outside_the_dead_band_there_is_no_share():
    found = directions_of(np.array([0.01, 0.0]), np.array([1.0, 1.0]), PARAMS)
    assert (found.n, found.share, found.low, found.n_in_band) == (0, None, None, 2)
    assert directions_of(np.array([0.0]), np.array([1.0]), WhatIfParams(dead_band=0)).n == 0


def test_the_mean_of_others_never_holds_a_pair_of_the_same_job():
    groups = np.repeat(np.arange(4), 3)
    measured = np.zeros(12)
    measured[groups == 2] = 100.0
    found = mean_of_others(measured, groups, WhatIfParams(n_folds=4), np.random.default_rng(1))
    assert found[groups == 2].tolist() == [0, 0, 0]
    assert found[groups != 2].tolist() == pytest.approx([100 / 3] * 9)
    assert np.isnan(mean_of_others(measured, np.zeros(12), PARAMS, np.random.default_rng(1))).all()


def test_the_true_effects_beat_both_simple_answers_and_correlate():
    pairs, effects = simulated(n_groups=40, n_pairs=10, log_noise=0.1)
    score = score_pairs(pairs["log_ratio"], effects, pairs["group_key"], PARAMS, np.random.default_rng(1))
    assert (score.n, score.n_groups) == (400, 40)
    assert score.mae < score.mae_mean_change < score.mae_no_change
    assert score.versus_no_change.high < 0
    assert score.versus_mean_change.high < 0
    # noise of both runs: 0.1 sqrt(2) sqrt(2 / pi)
    assert score.mae == pytest.approx(0.2 / np.sqrt(np.pi), rel=0.1)
    assert score.directions.share > 0.9
    assert score.directions.low < score.directions.share < score.directions.high
    assert score.correlation > 0.8
    assert score.rank_correlation > 0.8


def test_no_change_as_a_prediction_scores_as_no_change_and_has_no_direction():
    pairs, effects = simulated()
    score = score_pairs(pairs["log_ratio"], 0 * effects, pairs["group_key"], PARAMS, np.random.default_rng(1))
    assert score.mae == score.mae_no_change
    assert score.versus_no_change.value == 0
    assert score.directions.n_right == 0
    assert score.directions.n_undecided == score.directions.n
    assert (score.correlation, score.correlation_reason) == (None, "all predicted changes are alike")


def test_effects_of_other_jobs_are_no_better_than_the_mean():
    pairs, effects = simulated(n_groups=60)
    wrong = np.random.default_rng(4).permutation(effects)
    score = score_pairs(pairs["log_ratio"], wrong, pairs["group_key"], PARAMS, np.random.default_rng(1))
    assert score.versus_mean_change.low > 0
    assert abs(score.correlation) < 0.3


def test_where_nothing_changes_no_answer_beats_no_change():
    pairs, effects = simulated(log_effect=0, effect_sd=0)
    noise = np.random.default_rng(4).normal(0, 0.1, len(effects))
    score = score_pairs(pairs["log_ratio"], noise, pairs["group_key"], PARAMS, np.random.default_rng(1))
    assert score.versus_no_change.low > 0
    assert score.directions.low < 0.5 < score.directions.high


def test_no_pair_one_job_and_missing_predictions_are_answers():
    nothing = score_pairs([], [], [], PARAMS, np.random.default_rng(1))
    assert nothing.reason == "no matched pair with a measured and a predicted change"
    assert score_pairs([0.1], [np.nan], ["a"], PARAMS, np.random.default_rng(1)).n_unpredicted == 1
    one = score_pairs([0.1, 0.2], [0.1, 0.1], ["a", "a"], PARAMS, np.random.default_rng(1))
    assert one.reason == "one job: no other to take a mean change from"
    assert (one.mae_mean_change, one.directions_mean_change) == (None, None)
    assert one.correlation_reason == "fewer than 3 pairs"


def test_pairs_of_different_lengths_or_infinite_changes_are_refused():
    with pytest.raises(ValueError, match=r"pairs: shapes \(2,\), \(1,\), \(2,\)"):
        score_pairs([0.1, 0.2], [0.1], ["a", "b"], PARAMS, np.random.default_rng(1))
    with pytest.raises(ValueError, match="measured: values that are not finite"):
        score_pairs([np.inf], [0.1], ["a"], PARAMS, np.random.default_rng(1))
