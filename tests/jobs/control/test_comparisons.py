"""All pairs of one change compared in one call: the truth is found again, and no pairs are an answer."""

import numpy as np
import pytest

from tasks.jobs.control.comparisons import SIDES, compare, noise_of
from tasks.jobs.control.pairs import match_pairs
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.synthetic import SimulatedChange, simulate_pairs
from tasks.jobs.empirical import Empirical, gather_history

PARAMS = WhatIfParams(n_resamples=200, outlier_ratio=2)


def simulated(change, n_past=300):
    """Pairs, and the true distribution of each before and after as that of many past runs."""
    made = simulate_pairs(change, np.random.default_rng(3))
    pairs = match_pairs(made.runs)
    changed = pairs.of("no_spare")
    noise = change.log_noise * np.random.default_rng(9).standard_normal(n_past)
    keys = list(made.log_medians.index)
    group = np.array([keys.index(key) for key in changed["group_key"]])
    numbers = np.repeat(np.arange(len(keys)), n_past)
    sides = []
    for level, factor in ((made.log_medians, 1), (made.log_medians + made.log_effects, change.noise_factor)):
        times = np.exp(level.to_numpy()[numbers] + factor * np.tile(noise, len(keys)))
        sides.append(Empirical(gather_history(times, numbers), group))
    medians_s = np.exp(made.log_medians.to_numpy()[group])
    return pairs, changed, sides[0], sides[1], medians_s


def test_the_truth_is_found_in_ratios_seconds_variation_and_overall():
    change = SimulatedChange(n_groups=30, n_pairs=30, log_effect=0.8, effect_sd=0.5, log_noise=0.2, noise_factor=2)
    _, changed, before, after, medians_s = simulated(change)
    found = compare(changed, before, after, medians_s, "no_spare", PARAMS, np.random.default_rng(1))
    assert found.score.n == found.seconds.n == found.n_overall == 900
    assert found.score.versus_mean_change.high < 0
    assert found.measured.tolist() == changed["log_ratio"].tolist()
    assert np.abs(found.predicted - found.measured).mean() == pytest.approx(found.score.mae)
    assert found.seconds.versus_no_change.high < 0
    assert found.spread["p95"].correlation > 0.8
    assert list(found.overall) == SIDES
    for name in ("gap", "p95", "log_variance", "outlier_share"):
        for side in ("before", "after"):
            measured, predicted = found.overall.loc[name, [f"measured_{side}", f"predicted_{side}"]]
            assert predicted == pytest.approx(measured, rel=0.25, abs=0.02)
    assert found.overall.loc["outlier_share", "measured_after"] > 0.4  # the factor is about 2.2, an outlier here is 2


def test_runs_without_a_historic_median_are_left_out_of_the_overall_sample_only():
    _, changed, before, after, medians_s = simulated(SimulatedChange(n_groups=4, n_pairs=5))
    medians_s[:7] = np.nan
    found = compare(changed, before, after, medians_s, "no_spare", PARAMS, np.random.default_rng(1))
    assert (found.n_overall, found.score.n) == (13, 20)


def test_the_dead_band_of_seconds_is_in_seconds():
    _, changed, before, after, medians_s = simulated(SimulatedChange(n_groups=4, n_pairs=5))
    params = WhatIfParams(dead_band_s=1e6, n_resamples=100)
    found = compare(changed, before, after, medians_s, "no_spare", params, np.random.default_rng(1))
    assert found.seconds.directions.n_in_band == 20
    assert found.score.directions.n_in_band < 20


def test_noise_is_how_much_a_run_and_its_replay_differ():
    pairs = simulated(SimulatedChange(n_groups=50, n_pairs=20, log_noise=0.2, log_effect=3))[0]
    found = noise_of(pairs)
    assert found.n == 1000
    assert found.sd == pytest.approx(0.2 * np.sqrt(2), rel=0.1)
    assert found.mean_absolute == pytest.approx(0.4 / np.sqrt(np.pi), rel=0.1)


def test_no_pairs_give_reasons_and_no_figures():
    pairs, changed, before, after, _ = simulated(SimulatedChange(n_groups=2, n_pairs=2))
    nothing = np.empty(0, dtype=np.int64)
    found = compare(
        changed.iloc[:0], before.rows(nothing), after.rows(nothing), [], "no_spare", PARAMS, np.random.default_rng(1)
    )
    assert found.score.reason == "no matched pair with a measured and a predicted change"
    assert found.seconds.n == found.n_overall == 0
    assert found.overall.empty
    assert noise_of(match_pairs(changed.iloc[:0])).n == 0
    assert pairs.of("newest_sku").empty
