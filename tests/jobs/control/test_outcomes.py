"""A change from the question to the answer, with a model whose effect is known; and what may be claimed of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import lognorm

from tasks.jobs.binned import Binned, Tails
from tasks.jobs.control.claims import (
    ALWAYS,
    make_claims,
)
from tasks.jobs.control.outcomes import (
    MEASURES,
    ShapeModel,
    assess,
    changes,
    changes_by_group,
    describe_moves,
    group_labels,
    measure,
    migrate,
    moves,
    tokens_of,
)
from tasks.jobs.control.pairs import match_pairs, score_pairs
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.scenarios import parse_scenario
from tasks.jobs.control.synthetic import SimulatedChange, simulate_pairs
from tasks.jobs.empirical import Empirical, gather_history

PARAMS = WhatIfParams()
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
    return make_claims(assessed(training=frame()).changes, **more)


def scored(predicted_from, **settings):
    made = simulate_pairs(SimulatedChange(**settings), np.random.default_rng(2))
    pairs = match_pairs(made.runs).of("no_spare")
    told = predicted_from(made.log_effects[pairs["group_key"]].to_numpy())
    return score_pairs(pairs["log_ratio"], told, pairs["group_key"], np.random.default_rng(1))


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
    outcome = assessed(training=frame().iloc[:30])
    found = make_claims(outcome.changes, support=outcome.support)
    assert found.cannot[-1] == (
        "100.0 % of the 40 changed runs are extrapolated: 100.0 % lie outside the training range of a changed feature, "
        "most often by mean_tokens_mean, spare_tokens_mean, spare_tokens_available."
    )
    inside = replace(outcome.support, share=0.0)
    assert make_claims(outcome.changes, support=inside).cannot[-1] == ALWAYS[-1]
    still = replace(outcome.support, share=None, n_changed=0)
    assert "alters no feature" in make_claims(outcome.changes, support=still).cannot[-1]


MEASURED = WhatIfParams()
FINE_EDGES = np.linspace(0, 10, 201)


def past(*groups):
    """Each group's past runtimes as its prediction."""
    values = np.concatenate(groups)
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return Empirical(gather_history(values, numbers), np.arange(len(groups)))


def lognormal(deviation, medians_s):
    mass = np.diff(lognorm(deviation).cdf(FINE_EDGES))
    return Binned(FINE_EDGES, [mass / mass.sum()], medians_s, "ratio", Tails(0.5), np.ones((len(medians_s), 1)))


def test_the_measures_of_four_past_runs_worked_out_by_hand():
    # 1, 2, 3 and 30 s, median so far 2 s: one of four is at least 10 times as long, none 900 s away
    params = WhatIfParams(price_per_token_hour=7.2)
    found = measure(past([1.0, 2.0, 3.0, 30.0]), [2.0], [5.0], params).iloc[0]
    assert found["outlier_share"] == pytest.approx(0.25)
    assert found["outlier_share_delta"] == 0
    assert found["gap_s"] == 2  # 3 - 1
    assert found["gap_ratio"] == 1
    assert (found["p95_s"], found["p95_ratio"]) == (30, 15)
    assert (found["median_s"], found["mean_s"]) == (2, 9)
    assert found["sd_s"] == pytest.approx(np.std([1, 2, 3, 30]))
    assert found["token_s"] == 45
    assert found["money"] == pytest.approx(45 / 3600 * 7.2)


def test_an_outlier_is_at_least_so_many_times_the_median_and_so_far_from_it():
    found = measure(past([20.0, 19.9], [1000.0, 100.0, 1899.9]), [2.0, 1000.0], [1.0, 1.0], MEASURED)
    assert found["outlier_share"].tolist() == [0.5, 0]
    assert found["outlier_share_delta"].tolist() == pytest.approx([0, 1 / 3])  # 100 s is 900 s below, 1899.9 is not


def test_a_lognormal_prediction_has_the_measures_of_the_lognormal():
    found = measure(lognormal(0.5, [10.0, 100.0]), [10.0, 100.0], [1.0, 1.0], MEASURED)
    true = lognorm(0.5)
    assert found["gap_ratio"].tolist() == pytest.approx([true.ppf(0.75) - true.ppf(0.25)] * 2, rel=0.01)
    assert found["p95_s"].tolist() == pytest.approx([10 * true.ppf(0.95), 100 * true.ppf(0.95)], rel=0.01)
    assert found["mean_s"].tolist() == pytest.approx([10 * true.mean(), 100 * true.mean()], rel=0.02)
    assert found["sd_ratio"].tolist() == pytest.approx([true.std()] * 2, rel=0.1)


def test_minutes_instead_of_seconds_change_no_ratio():
    one = measure(lognormal(0.4, [10.0]), [10.0], [1.0], MEASURED)
    other = measure(lognormal(0.4, [600.0]), [600.0], [1.0], MEASURED)
    ratios = ["outlier_share", "gap_ratio", "p95_ratio", "sd_ratio"]
    assert other[ratios].iloc[0].tolist() == pytest.approx(one[ratios].iloc[0].tolist())


def test_without_a_median_or_tokens_only_what_needs_them_is_unknown():
    found = measure(past([1.0, 2.0], [1.0, 2.0], [3.0]), [np.nan, 0.0, 1.0], [1.0, 1.0, np.nan], MEASURED)
    assert found["gap_ratio"].isna().tolist() == [True, True, False]
    assert found["outlier_share"].isna().tolist() == [True, True, False]
    assert found["money"].isna().tolist() == [False, False, True]
    assert not found[["gap_s", "p95_s", "sd_s", "median_s", "mean_s"]].isna().any(axis=None)


def test_a_column_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"tokens: shape \(2,\); expected \(1,\)"):
        measure(past([1.0]), [1.0], [1.0, 2.0], MEASURED)


def test_tokens_are_those_in_use_before_times_the_request_over_earlier_ones():
    frame = pd.DataFrame(
        {"requested_tokens": [8.0, 4.0, 6.0], "mean_tokens_mean": [6.0, 3.0, np.nan], "tokens_ratio": [2.0, np.nan, 1]}
    )
    assert tokens_of(frame, MEASURED).tolist() == [12, 3, 6]
    assert tokens_of(frame, WhatIfParams(charged="requested")).tolist() == [8, 4, 6]
    assert np.isnan(tokens_of(frame[[]], MEASURED)).all()


def test_half_the_deviation_is_found_as_a_smaller_gap_and_the_same_median_with_an_interval():
    medians = np.linspace(10, 50, 60)
    groups = np.arange(60) % 20
    before = measure(lognormal(0.6, medians), medians, np.ones(60), MEASURED)
    after = measure(lognormal(0.3, medians), medians, np.ones(60), MEASURED)
    found = changes(before, after, groups, np.random.default_rng(1))
    assert list(found.index) == list(MEASURES)
    gap = found.loc["gap_s"]
    assert gap["low"] <= gap["change"] <= gap["high"] < 0
    assert gap["change"] == pytest.approx(gap["after"] - gap["before"])
    assert gap["relative"] == pytest.approx(-0.5, abs=0.02)
    assert abs(found.loc["median_s", "relative"]) < 0.01
    assert gap["n_groups"] == 20


def test_one_job_has_a_change_and_no_interval_and_says_why():
    before, after = (measure(past([1.0, time], [2.0, time]), [1.0] * 2, [1.0] * 2, MEASURED) for time in (9.0, 5.0))
    found = changes(before, after, ["a", "a"], np.random.default_rng(1)).loc["p95_s"]
    assert found["change"] == -4
    assert found["low"] is None or np.isnan(found["low"])
    assert found["reason"] == "one group: nothing to draw from"


def test_a_measure_that_is_unknown_for_all_runs_has_a_reason_and_no_figure():
    found = measure(past([1.0]), [np.nan], [1.0], MEASURED)
    row = changes(found, found, ["a"], np.random.default_rng(1)).loc["gap_ratio"]
    assert row["reason"] == "no run has both scores"
    assert row["n_left_out"] == 1


def test_changes_by_job_are_means_over_its_runs():
    before = measure(past([1.0], [3.0], [5.0]), [1.0] * 3, [1.0] * 3, MEASURED)
    after = measure(past([2.0], [6.0], [5.0]), [1.0] * 3, [1.0] * 3, MEASURED)
    found = changes_by_group(before, after, ["b", "b", "a"])
    assert found["median_s"].to_dict() == {"a": 0, "b": 2}
    assert found["n_runs"].to_dict() == {"a": 1, "b": 2}


TABLE_2 = pd.DataFrame(  # Zhu et al. 2023, Table 2, ratio, shapes 0 to 3
    {
        "outlier_percent": [1.63, 0.42, 1.66, 0.25],
        "p25_p75": [0.06, 0.11, 0.16, 0.17],
        "p95": [1.41, 1.2, 1.37, 1.29],
        "std": [2.46, 0.93, 2.18, 1.45],
    }
)


def example():
    """Twenty runs of shape 2, of which 3 go to shape 1 (15 %, as in 7.1) and 1 to 0; ten of shape 0 stay."""
    return migrate([2] * 20 + [0] * 10, [1] * 3 + [0] + [2] * 16 + [0] * 10, 4)


def test_every_run_is_counted_once_from_its_shape_before_to_that_after():
    found = example()
    assert found.counts.tolist() == [[10, 0, 0, 0], [0, 0, 0, 0], [1, 3, 16, 0], [0, 0, 0, 0]]
    assert found.n == 30
    assert found.share_moved == pytest.approx(4 / 30)
    assert found.shares[2].tolist() == pytest.approx([0.05, 0.15, 0.8, 0])
    assert np.isnan(found.shares[1]).all()


def test_counts_by_shape_before_and_after_are_those_of_the_labels():
    rng = np.random.default_rng(3)
    before, after = rng.integers(0, 5, 200), rng.integers(0, 5, 200)
    found = migrate(before, after, 5)
    assert found.counts.sum(axis=1).tolist() == np.bincount(before, minlength=5).tolist()
    assert found.counts.sum(axis=0).tolist() == np.bincount(after, minlength=5).tolist()
    assert migrate(after, before, 5).counts.tolist() == found.counts.T.tolist()


def test_runs_without_a_shape_before_or_after_are_left_out_and_counted():
    found = migrate([0, -1, 1], [1, 0, -1], 2)
    assert found.counts.tolist() == [[0, 1], [0, 0]]
    assert found.n_unlabelled == 2


def test_moves_are_the_most_frequent_first_with_table_2_before_and_after():
    table = moves(example(), TABLE_2)
    assert table[["before", "after", "n"]].to_numpy().tolist() == [[2, 1, 3], [2, 0, 1]]
    first = table.iloc[0]
    assert (first["share"], first["share_of_shape"]) == (0.1, 0.15)
    assert (first["p25_p75_before"], first["p25_p75_after"]) == (0.16, 0.11)


def test_a_move_is_told_with_shares_gap_outliers_and_deviation():
    assert describe_moves(moves(example(), TABLE_2))[0] == (
        "15.0 % of the runs of shape 2 are now in shape 1 (3, 10.0 % of all): outliers from 1.66 to 0.42 %, "
        "25th-75th gap from 0.16 to 0.11, 95th percentile from 1.37 to 1.2, deviation from 2.18 to 0.93."
    )
    seconds = describe_moves(moves(example(), TABLE_2[["p25_p75"]]), unit="s", what="jobs", most=1)
    assert seconds == ["15.0 % of the jobs of shape 2 are now in shape 1 (3, 10.0 % of all): 25th-75th gap "
                       "from 0.16 to 0.11 s."]  # fmt: skip


def test_nothing_moved_is_an_answer():
    still = migrate([0, 1], [0, 1], 2)
    assert moves(still, TABLE_2).empty
    assert describe_moves(moves(still, TABLE_2)) == ["No runs change their shape."]
    assert migrate([], [], 2).share_moved is None
    assert moves(migrate([], [], 2), TABLE_2).empty


def test_the_shape_of_a_job_is_the_most_probable_over_its_runs():
    probabilities = np.array([[0.6, 0.4], [0.1, 0.9], [0.5, 0.5]])
    assert group_labels(probabilities, ["b", "b", "a"]).to_dict() == {"a": 0, "b": 1}


@pytest.mark.parametrize(("before", "after"), [([0, 1], [0]), ([2], [0])])
def test_labels_that_cannot_be_are_refused(before, after):
    with pytest.raises(ValueError, match=r"labels: (shapes|up to 2; expected 0 to 1)"):
        migrate(before, after, 2)
