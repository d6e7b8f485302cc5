"""Matched pairs are found as the recorder wrote them, what has no partner is counted, and what the figures support is a
claim."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.control.effects import Support, changes
from tasks.jobs.control.pairs import (
    ALWAYS,
    SIDES,
    Claims,
    compare,
    describe_overall,
    directions_of,
    make_claims,
    match_pairs,
    mean_of_others,
    noise_of,
    predicted_change,
    score_pairs,
    spread_of,
)
from tasks.jobs.distribution import gather_history
from tasks.jobs.params import MEASURES


def runs():
    """One run of D3, its baseline, and two changes of it, not in the order in which they belong."""
    return pd.DataFrame(
        {
            "run_id": ["0-no_spare", "0", "0-baseline", "0-newest_sku"],
            "group_key": ["job"] * 4,
            "what_if": ["no_spare", None, "baseline", "newest_sku"],
            "matched_run_id": ["0-baseline", None, "0", "0-baseline"],
            "runtime_s": [8.0, 3.0, 4.0, 2.0],
        },
        index=[10, 11, 12, 13],
    )


def test_a_changed_run_is_paired_with_its_baseline_and_a_baseline_with_the_run_that_it_repeats():
    found = match_pairs(runs())
    assert found.frame["what_if"].tolist() == ["no_spare", "replay", "newest_sku"]
    changed = found.of("no_spare").iloc[0]
    assert (changed["row_before"], changed["row_after"]) == (2, 0)
    assert changed["log_ratio"] == pytest.approx(np.log(2))
    assert found.of("newest_sku").iloc[0]["log_ratio"] == pytest.approx(-np.log(2))
    assert found.of("replay").iloc[0]["row_before"] == 1
    assert found.reason is None


def test_a_change_whose_baseline_failed_is_not_paired_with_the_original():
    found = match_pairs(runs()[runs()["run_id"] != "0-baseline"])
    assert found.frame.empty
    assert found.reason == "2 runs repeat another, but none has its partner, both with a runtime above 0 s"


def test_a_change_that_names_the_original_instead_of_a_baseline_is_no_pair():
    found = match_pairs(runs().assign(matched_run_id=["0", None, "0", "0-baseline"]))
    assert found.frame["what_if"].tolist() == ["replay", "newest_sku"]


def test_a_runtime_of_zero_or_none_makes_no_ratio():
    found = match_pairs(runs().assign(runtime_s=[0.0, 3.0, 4.0, np.nan]))
    assert found.frame["what_if"].tolist() == ["replay"]


@pytest.mark.parametrize(
    "log",
    [
        pd.DataFrame({"run_id": ["1"], "group_key": ["a"], "runtime_s": [1.0]}),
        runs()[runs()["what_if"].isna()].assign(what_if=None),
        runs().iloc[:0],
    ],
)
def test_a_log_without_pairs_gets_a_reason(log):
    found = match_pairs(log)
    assert found.frame.empty
    assert found.of("no_spare").empty
    assert found.reason is not None
    assert found.reason.startswith("no run of this log repeats another")


def test_a_changed_plan_counts_under_the_key_of_its_baseline():
    found = match_pairs(runs().assign(group_key=["job · plan 2", "job", "job", "job"]))
    assert found.of("no_spare")["group_key"].tolist() == ["job"]


def test_a_predicted_change_is_that_of_the_medians_and_unknown_at_zero_seconds():
    history = gather_history([2.0, 2.0, 4.0, 9.0, 0.0], [0, 0, 1, 1, 2])
    found = predicted_change(history.rows(np.array([0, 2])), history.rows(np.array([1, 0])))
    assert found.tolist() == pytest.approx([np.log(2), np.nan], nan_ok=True)


@dataclass(frozen=True)
class SimulatedChange:
    """A change that multiplies the runtimes of each job by a factor of its own, mean and deviation over jobs given as
    logarithms; log_noise: deviation of each run's log runtime, noise_factor times as much in the changed runs."""

    n_groups: int = 40
    n_pairs: int = 10
    log_effect: float = 0.3
    effect_sd: float = 0.3
    log_noise: float = 0.1
    noise_factor: float = 1


def simulate_pairs(change, rng):
    """Of each job n_pairs original runs, each repeated unchanged and changed, all with independent noise; the true log
    factor and log median of unchanged runs by group_key."""
    keys = [f"job-{number:03}" for number in range(change.n_groups)]
    effects = pd.Series(change.log_effect + change.effect_sd * rng.standard_normal(len(keys)), index=keys)
    medians = pd.Series(rng.normal(2.0, 1.0, len(keys)), index=keys)
    rows = []
    for place in range(change.n_pairs):
        for key in keys:
            run_id, again = f"{key}-{place}", f"{key}-{place}-baseline"
            changed, louder = f"{run_id}-no_spare", change.log_noise * change.noise_factor
            for name, what_if, partner, level, noise in (
                (run_id, None, None, 0.0, change.log_noise),
                (again, "baseline", run_id, 0.0, change.log_noise),
                (changed, "no_spare", again, effects[key], louder),
            ):
                rows.append((name, key, what_if, partner, np.exp(medians[key] + level + noise * rng.standard_normal())))
    runs = pd.DataFrame(rows, columns=["run_id", "group_key", "what_if", "matched_run_id", "runtime_s"])
    submitted_at = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(len(runs)) * 60.0, unit="s")
    ended_at = submitted_at + pd.to_timedelta(runs["runtime_s"].to_numpy(), unit="s")
    runs = runs.assign(submitted_at=submitted_at, ended_at=ended_at, status="completed", is_simulated=True)
    return SimpleNamespace(runs=runs, log_effects=effects, log_medians=medians)


def simulated(**settings):
    made = simulate_pairs(SimulatedChange(**settings), np.random.default_rng(2))
    pairs = match_pairs(made.runs).of("no_spare")
    return pairs, made.log_effects[pairs["group_key"]].to_numpy()


def test_directions_worked_out_by_hand():
    # three pairs with a direction: right, wrong, undecided; one in the band; one without a prediction
    found = directions_of(np.array([0.5, -0.5, 0.2, 0.01, 0.9]), np.array([0.1, 0.1, 0, 1, np.nan]))
    assert (found.n, found.n_in_band) == (3, 1)
    assert found.share == pytest.approx(1 / 3)
    # Wilson, z = 1.96: (1/3 + z²/6 ± z sqrt((2/9)/3 + z²/36)) / (1 + z²/3)
    z = 1.959964
    middle, half = 1 / 3 + z**2 / 6, z * np.sqrt((2 / 9) / 3 + z**2 / 36)
    assert (found.low, found.high) == pytest.approx(
        ((middle - half) / (1 + z**2 / 3), (middle + half) / (1 + z**2 / 3))
    )


def test_without_a_pair_outside_the_dead_band_there_is_no_share():
    found = directions_of(np.array([0.01, 0.0]), np.array([1.0, 1.0]))
    assert (found.n, found.share, found.low, found.n_in_band) == (0, None, None, 2)


def test_the_mean_of_others_never_holds_a_pair_of_the_same_job():
    groups = np.repeat(np.arange(5), 3)  # as many folds as jobs
    measured = np.zeros(15)
    measured[groups == 2] = 100.0
    found = mean_of_others(measured, groups, np.random.default_rng(1))
    assert found[groups == 2].tolist() == [0, 0, 0]
    assert found[groups != 2].tolist() == pytest.approx([100 / 4] * 12)
    assert np.isnan(mean_of_others(measured, np.zeros(15), np.random.default_rng(1))).all()


def test_the_true_effects_beat_both_simple_answers_and_correlate():
    pairs, effects = simulated(n_groups=40, n_pairs=10, log_noise=0.1)
    score = score_pairs(pairs["log_ratio"], effects, pairs["group_key"], np.random.default_rng(1))
    assert (score.n, score.n_groups) == (400, 40)
    assert score.mae < score.mae_mean_change < score.mae_no_change
    assert score.versus_no_change.high < 0
    assert score.versus_mean_change.high < 0
    # noise of both runs: 0.1 sqrt(2) sqrt(2 / pi)
    assert score.mae == pytest.approx(0.2 / np.sqrt(np.pi), rel=0.1)
    assert score.directions.share > 0.9
    assert score.directions.low < score.directions.share < score.directions.high
    assert score.correlation > 0.8


def test_no_change_as_a_prediction_scores_as_no_change_and_has_no_direction():
    pairs, effects = simulated()
    score = score_pairs(pairs["log_ratio"], 0 * effects, pairs["group_key"], np.random.default_rng(1))
    assert score.mae == score.mae_no_change
    assert score.versus_no_change.value == 0
    assert (score.directions.share, score.correlation) == (0, None)


def test_no_pair_one_job_and_missing_predictions_are_answers():
    nothing = score_pairs([], [], [], np.random.default_rng(1))
    assert nothing.reason == "no matched pair with a measured and a predicted change"
    assert score_pairs([0.1], [np.nan], ["a"], np.random.default_rng(1)).reason == nothing.reason
    one = score_pairs([0.1, 0.2], [0.1, 0.1], ["a", "a"], np.random.default_rng(1))
    assert one.reason == "one job: no other to take a mean change from"
    assert (one.mae_mean_change, one.directions_mean_change, one.correlation) == (None, None, None)


def test_values_of_unequal_weight_count_by_their_weight_in_any_order():
    # 1 with weight 0.7 and 9 with weight 0.3: the quartiles are 1 and 9, the variance 0.21 * 8²
    found = spread_of(np.array([9.0, 1.0]), np.array([0.3, 0.7]))
    assert (found["gap"], found["p95"]) == (8, 9)
    assert found["variance"] == pytest.approx(0.21 * 64)
    assert found["log_variance"] == pytest.approx(0.21 * np.log(9) ** 2)
    assert spread_of(np.array([20.0, 1.0, 5.0]), np.array([0.1, 0.5, 0.4]))["gap"] == 4


def compared_pairs(change, n_past=300):
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
        sides.append(gather_history(times, numbers).rows(group))
    medians_s = np.exp(made.log_medians.to_numpy()[group])
    return pairs, changed, sides[0], sides[1], medians_s


def test_the_truth_is_found_in_ratios_and_in_all_pairs_together():
    change = SimulatedChange(n_groups=30, n_pairs=30, log_effect=0.8, effect_sd=0.5, log_noise=0.2, noise_factor=2)
    _, changed, before, after, medians_s = compared_pairs(change)
    found = compare(changed, before, after, medians_s, "no_spare", np.random.default_rng(1))
    assert found.score.n == 900
    assert found.score.versus_mean_change.high < 0
    assert found.measured.tolist() == changed["log_ratio"].tolist()
    assert np.abs(found.predicted - found.measured).mean() == pytest.approx(found.score.mae)
    assert list(found.overall) == SIDES
    for name in ("gap", "p95", "log_variance", "outlier_share"):
        for side in ("before", "after"):
            measured, predicted = found.overall.loc[name, [f"measured_{side}", f"predicted_{side}"]]
            assert predicted == pytest.approx(measured, rel=0.25, abs=0.02)


def test_runs_without_a_historic_median_are_left_out_of_the_overall_sample_only():
    _, changed, before, after, medians_s = compared_pairs(SimulatedChange(n_groups=4, n_pairs=5))
    medians_s[:7] = np.nan
    found = compare(changed, before, after, medians_s, "no_spare", np.random.default_rng(1))
    rest = np.arange(7, 20)
    known = compare(changed.iloc[7:], before.rows(rest), after.rows(rest), medians_s[7:], "", np.random.default_rng(1))
    assert found.score.n == 20
    pd.testing.assert_frame_equal(found.overall, known.overall)


def test_noise_is_how_much_a_run_and_its_replay_differ():
    pairs = compared_pairs(SimulatedChange(n_groups=50, n_pairs=20, log_noise=0.2, log_effect=3))[0]
    found = noise_of(pairs)
    assert found.n == 1000
    assert found.mean_absolute == pytest.approx(0.4 / np.sqrt(np.pi), rel=0.1)


def test_no_pairs_give_reasons_and_no_figures():
    pairs, changed, before, after, _ = compared_pairs(SimulatedChange(n_groups=2, n_pairs=2))
    nothing = np.empty(0, dtype=np.int64)
    found = compare(
        changed.iloc[:0], before.rows(nothing), after.rows(nothing), np.zeros(0), "no_spare", np.random.default_rng(1)
    )
    assert found.score.reason == "no matched pair with a measured and a predicted change"
    assert found.overall.empty
    assert noise_of(match_pairs(changed.iloc[:0])).n == 0
    assert pairs.of("newest_sku").empty


WITHIN = Support(40, 0.0, 0.0, 0.0, {})


def claims(*, support=WITHIN, score=None):
    """Of 40 runs of 10 jobs whose gap falls from 7.75 to 1 s, while the median rises in some and falls in others."""
    up_and_down = np.where(np.arange(40) % 2, 1.0, -1.0)
    before = pd.DataFrame({name: np.full(40, 7.75) for name in MEASURES})
    after = before.assign(gap_s=1.0, median_s=7.75 + up_and_down)
    found = changes(before, after, np.arange(40) // 4, np.random.default_rng(1))
    return make_claims(found, support, score)


def scored(predicted_from, **settings):
    pairs, effects = simulated(**settings)
    return score_pairs(pairs["log_ratio"], predicted_from(effects), pairs["group_key"], np.random.default_rng(1))


def test_without_pairs_nothing_measured_is_claimed():
    found = claims(score=score_pairs([], [], [], np.random.default_rng(1)))
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
    outside = {"mean_tokens_mean": 1.0, "spare_tokens_mean": 1.0, "spare_tokens_available": 0.75, "load_sd": 0.1}
    far = Support(40, 1.0, 0.9, 0.25, outside)
    assert claims(support=far).cannot[-1] == (
        "100.0 % of the 40 changed runs are extrapolated: 90.0 % lie outside the training range of a changed feature, "
        "most often by mean_tokens_mean, spare_tokens_mean, spare_tokens_available; 25.0 % are less like any training "
        "run than 99 % of the unchanged runs are."
    )
    assert claims().cannot[-1] == ALWAYS[-1]
    assert "alters no feature" in claims(support=replace(far, share=None, n_changed=0)).cannot[-1]


def test_what_the_pairs_do_not_bear_out_is_no_claim():
    measured, jobs = np.random.default_rng(1).normal(0, 0.1, 200), np.arange(200) % 20
    found = claims(score=score_pairs(measured, np.full(200, 0.5), jobs, np.random.default_rng(1)))
    assert not any(line.startswith("Predicted") for line in found.can)
    assert sum("the measured pairs do not bear it out" in line for line in found.cannot) == 3


def test_a_variation_that_went_the_other_way_is_no_claim():
    sides = ["measured_before", "measured_after", "predicted_before", "predicted_after"]
    overall = pd.DataFrame([[4.4, 3.9, 3.9, 4.5], [1.2, 1.0, 1.1, 0.9]], index=["p95", "gap"], columns=sides)
    found = describe_overall(overall)
    assert found.can == [
        "Measured over all pairs together: the 25th-75th gap, over the historic median, went from 1.2 to 1; "
        "foretold was 1.1 to 0.9."
    ]
    assert found.cannot[0].endswith("went from 4.4 to 3.9; foretold was 3.9 to 4.5, the other way.")
    assert describe_overall(pd.DataFrame(columns=sides)) == Claims([], [])
