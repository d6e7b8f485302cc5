"""A change from the question to the answer, with a model whose effect is known; where the training data end."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import lognorm

from tasks.jobs.control.effects import (
    MEASURES,
    ChangeOutcome,
    ShapeModel,
    assess,
    changes,
    changes_by_group,
    describe_moves,
    likeness,
    measure,
    migrate,
    moves_of,
    support_of,
    tokens_of,
)
from tasks.jobs.control.scenarios import parse_scenario
from tasks.jobs.distribution import even_steps, gather_history
from tasks.jobs.params import WhatIfParams

PARAMS = WhatIfParams()
LEVELS = (np.arange(1000) + 0.5) / 1000
SHAPES = np.stack([0.9 + 0.2 * LEVELS, 2 * LEVELS])  # quantiles of a narrow and a wide ratio to the median
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
    return even_steps(MEDIANS[:, None] * SHAPES[classify(features).argmax(axis=1)])


def assessed(scenario="no_spare", **more):
    more = {"models": {}, "training": frame(), "leaves": lambda features: np.zeros((len(features), 1), int), **more}
    question, rng = parse_scenario(scenario=scenario), np.random.default_rng(1)
    return assess(question, frame(), predict, GROUPS, MEDIANS, PARAMS, rng, **more)


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
    found = assessed(training=frame().iloc[:30])
    assert found.support.share == 1  # spare tokens were never 0 there, nor were 2 in use on average


def past(*groups):
    """Each group's past runtimes as its prediction."""
    values = np.concatenate(groups)
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return gather_history(values, numbers)


def measured(predicted, medians_s, tokens, params=PARAMS):
    return measure(predicted, np.array(medians_s), np.array(tokens), params)


def lognormal(deviation, medians_s):
    return even_steps(np.array(medians_s)[:, None] * lognorm(deviation).ppf(LEVELS))


def test_the_measures_of_four_past_runs_worked_out_by_hand():
    # 1, 2, 3 and 30 s, median so far 2 s: one of four is at least 10 times as long, none 900 s away
    params = WhatIfParams(price_per_token_hour=7.2)
    found = measured(past([1.0, 2.0, 3.0, 30.0]), [2.0], [5.0], params).iloc[0]
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
    found = measured(past([20.0, 19.9], [1000.0, 100.0, 1899.9]), [2.0, 1000.0], [1.0, 1.0], PARAMS)
    assert found["outlier_share"].tolist() == [0.5, 0]
    assert found["outlier_share_delta"].tolist() == pytest.approx([0, 1 / 3])  # 100 s is 900 s below, 1899.9 is not


def test_without_a_median_or_tokens_only_what_needs_them_is_unknown():
    found = measured(past([1.0, 2.0], [1.0, 2.0], [3.0]), [np.nan, 0.0, 1.0], [1.0, 1.0, np.nan], PARAMS)
    assert found["gap_ratio"].isna().tolist() == [True, True, False]
    assert found["outlier_share"].isna().tolist() == [True, True, False]
    assert found["money"].isna().tolist() == [False, False, True]
    assert not found[["gap_s", "p95_s", "sd_s", "median_s", "mean_s"]].isna().any(axis=None)


def test_tokens_are_those_in_use_before_times_the_request_over_earlier_ones():
    frame = pd.DataFrame(
        {"requested_tokens": [8.0, 4.0, 6.0], "mean_tokens_mean": [6.0, 3.0, np.nan], "tokens_ratio": [2.0, np.nan, 1]}
    )
    assert tokens_of(frame).tolist() == [12, 3, 6]
    assert np.isnan(tokens_of(frame[[]])).all()


def test_half_the_deviation_is_found_as_a_smaller_gap_and_the_same_median_with_an_interval():
    medians = np.linspace(10, 50, 60)
    groups = np.arange(60) % 20
    before = measure(lognormal(0.6, medians), medians, np.ones(60), PARAMS)
    after = measure(lognormal(0.3, medians), medians, np.ones(60), PARAMS)
    found = changes(before, after, groups, np.random.default_rng(1))
    assert list(found.index) == list(MEASURES)
    gap = found.loc["gap_s"]
    assert gap["low"] <= gap["change"] <= gap["high"] < 0
    assert gap["change"] == pytest.approx(gap["after"] - gap["before"])
    assert gap["relative"] == pytest.approx(-0.5, abs=0.02)
    assert abs(found.loc["median_s", "relative"]) < 0.01
    assert gap["n_groups"] == 20


def test_one_job_has_a_change_and_no_interval_and_says_why():
    before, after = (measured(past([1.0, time], [2.0, time]), [1.0] * 2, [1.0] * 2, PARAMS) for time in (9.0, 5.0))
    found = changes(before, after, ["a", "a"], np.random.default_rng(1)).loc["p95_s"]
    assert found["change"] == -4
    assert found["low"] is None or np.isnan(found["low"])
    assert found["reason"] == "one group: nothing to draw from"


def test_a_measure_that_is_unknown_for_all_runs_has_a_reason_and_no_figure():
    found = measured(past([1.0]), [np.nan], [1.0], PARAMS)
    row = changes(found, found, ["a"], np.random.default_rng(1)).loc["gap_ratio"]
    assert row["reason"] == "no run has both scores"


def test_changes_by_job_are_means_over_its_runs():
    before = measured(past([1.0], [3.0], [5.0]), [1.0] * 3, [1.0] * 3, PARAMS)
    after = measured(past([2.0], [6.0], [5.0]), [1.0] * 3, [1.0] * 3, PARAMS)
    found = changes_by_group(ChangeOutcome([], before, after, before, np.array(["b", "b", "a"]), {}, None))
    assert found["median_s"].to_dict() == {"a": 0, "b": 2}
    assert found["n_runs"].to_dict() == {"a": 1, "b": 2}


TABLE_2 = pd.DataFrame(  # Zhu et al. 2023, Table 2, ratio, shapes 0 to 3
    {"outlier_percent": [1.63, 0.42, 1.66, 0.25], "p25_p75": [0.06, 0.11, 0.16, 0.17], "p95": [1.41, 1.2, 1.37, 1.29]}
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


def test_a_move_is_told_with_shares_gap_and_outliers_the_most_frequent_first():
    first, second = describe_moves(example(), TABLE_2)
    assert first == (
        "15.0 % of the runs of shape 2 are now in shape 1 (3, 10.0 % of all): outliers from 1.66 to 0.42 %, "
        "25th-75th gap from 0.16 to 0.11, 95th percentile from 1.37 to 1.2."
    )
    assert second.startswith("5.0 % of the runs of shape 2 are now in shape 0 (1, 3.3 % of all)")
    assert describe_moves(example(), TABLE_2[["p25_p75"]], " s")[0].endswith("25th-75th gap from 0.16 to 0.11 s.")


def test_nothing_moved_is_an_answer():
    assert describe_moves(migrate([0, 1], [0, 1], 2), TABLE_2) == ["No runs change their shape."]
    assert migrate([], [], 2).share_moved is None


def test_the_shape_of_a_job_is_the_most_probable_over_its_runs():
    before = pd.DataFrame([[0.6, 0.4], [0.1, 0.9], [0.5, 0.5]])
    found = moves_of(ShapeModel(lambda frame: frame.to_numpy(), TABLE_2), before, before[[1, 0]], ["b", "b", "a"], "")
    assert found.groups.counts.tolist() == [[1, 0], [1, 0]]  # a: 0 before and after (a tie), b: 1 before, 0 after
    assert found.runs.counts.tolist() == [[1, 1], [1, 0]]


def table(**columns):
    return pd.DataFrame({name: np.asarray(values, dtype=float) for name, values in columns.items()})


def grid(features):
    """Leaves of two trees, each of which cuts one feature at whole numbers, and of one that cuts both."""
    cells = np.floor(features.to_numpy()).astype(int)
    return np.column_stack([cells[:, 0], cells[:, 1], cells[:, 0] * 100 + cells[:, 1]])


def supported(before, after, training, leaves=lambda features: np.zeros((len(features), 1), int)):
    return support_of(before, after, training, leaves)


def test_a_value_beyond_the_training_values_is_extrapolated_and_named():
    before = table(load=[1, 1, 1, 1], tokens=[2, 2, 2, 2])
    after = before.assign(load=[0.5, 1.5, 3.0, 1.0])
    found = supported(before, after, table(load=[1, 2], tokens=[2, 2]))
    assert found.n_changed == 3
    assert found.share == pytest.approx(2 / 3)
    assert found.outside == {"load": pytest.approx(2 / 3)}
    assert (found.share_outside, found.share_unlike) == (found.share, 0)


def test_an_unchanged_row_outside_the_range_is_not_the_fault_of_the_change():
    before = table(load=[9.0, 1.0], tokens=[1, 1])
    found = supported(before, before.assign(tokens=[2.0, 1.0]), table(load=[1, 2], tokens=[1, 2]))
    assert (found.n_changed, found.share) == (1, 0)
    other = before.assign(tokens=[2.0, 1.0], load=[9.0, 2.0])  # the load is changed in another row
    assert supported(before, other, table(load=[1, 2], tokens=[1, 2])).share == 0


def test_unknown_is_outside_unless_training_rows_were_unknown_too():
    before = table(load=[1.0], tokens=[1.0])
    after = before.assign(load=[np.nan])
    assert supported(before, after, table(load=[1.0, 2.0], tokens=[1, 1])).share == 1
    assert supported(before, after, table(load=[1.0, np.nan], tokens=[1, 1])).share == 0
    assert supported(before, before.assign(load=[1.5]), table(load=[np.nan] * 2, tokens=[1, 1])).share == 1


def test_values_common_one_by_one_but_never_met_together_are_found_by_leaves():
    rng = np.random.default_rng(2)
    a = rng.uniform(0, 3, 300)
    training = table(a=a, b=a)  # b always goes with a
    before = training.iloc[:100].reset_index(drop=True)
    apart = before.assign(b=(2.9 - before["a"]).clip(a.min(), a.max()))
    assert supported(before, apart, training).share == 0  # each within its range
    found = supported(before, apart, training, leaves=grid)
    is_together = np.floor(apart["a"]) == np.floor(apart["b"])
    assert found.n_changed == 100
    assert found.share_unlike == pytest.approx((~is_together).mean())
    assert found.share_outside == 0


def test_likeness_is_the_share_of_trees_with_the_nearest_training_row():
    found = likeness(np.array([[1, 2, 3, 4], [9, 9, 9, 9]]), np.array([[1, 2, 0, 0], [0, 0, 0, 4]]))
    assert found.tolist() == [0.5, 0]
    rng = np.random.default_rng(1)
    many = rng.integers(0, 5, (200, 7))  # more than one block
    assert likeness(many, many).tolist() == [1.0] * 200
