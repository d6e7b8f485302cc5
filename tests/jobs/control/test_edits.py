"""Edits of features: exactly what was asked for changes, with what follows from it, and nothing else."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.control.asking import parse_scenario
from tasks.jobs.control.edits import apply, changed_columns
from tasks.jobs.control.params import WhatIfParams

NAN = np.nan
PARAMS = WhatIfParams()


def features():
    """Three runs: one takes spare tokens, one does not, one is the first of its job."""
    return pd.DataFrame(
        {
            "input_bytes": [100.0, 200.0, 400.0],
            "input_ratio": [1.0, 2.0, NAN],
            "requested_tokens": [4.0, 4.0, NAN],
            "tokens_ratio": [1.0, 0.5, NAN],
            "spare_tokens_available": [10.0, 2.0, 5.0],
            "load_mean": [0.5, 0.6, NAN],
            "load_sd": [0.3, 0.2, NAN],
            "sku_load_sd_gen3": [0.1, NAN, NAN],
            "min_tokens_mean": [3.0, 4.0, NAN],
            "mean_tokens_mean": [7.0, 4.0, NAN],
            "peak_tokens_mean": [12.0, 4.0, NAN],
            "spare_tokens_mean": [6.0, 0.0, NAN],
            "spare_tokens_sd": [2.0, 0.0, NAN],
            "peak_tokens_sd": [3.0, 0.5, NAN],
            "read_bytes_sd": [5.0, 6.0, NAN],
            "hour_of_day": [1.0, 2.0, 3.0],
            "log_ratio_mean": [0.0, -0.1, NAN],
            "outlier_share_before": [0.1, 0.0, NAN],
        },
        index=[7, 8, 9],
    )


def edited(**asked):
    return apply(parse_scenario(PARAMS, **asked), features())


def test_an_edit_changes_neither_the_frame_that_it_is_given_nor_its_columns_and_index():
    frame = features()
    after = apply(parse_scenario(PARAMS, scenario="no_spare"), frame)
    pd.testing.assert_frame_equal(frame, features())
    assert list(after) == list(frame)
    assert list(after.index) == [7, 8, 9]


def test_a_feature_set_is_the_same_in_every_row_and_nothing_else_changes():
    after = edited(sets=["hour_of_day=12"])
    assert after["hour_of_day"].tolist() == [12.0, 12.0, 12.0]
    assert changed_columns(features(), after) == ["hour_of_day"]


def test_twice_the_input_is_twice_the_ratio_to_earlier_inputs():
    after = edited(sets=["input_bytes=x2"])
    assert after["input_bytes"].tolist() == [200.0, 400.0, 800.0]
    assert after["input_ratio"].tolist()[:2] == [2.0, 4.0]
    assert np.isnan(after["input_ratio"].iloc[2])


def test_a_request_set_moves_its_ratio_to_earlier_requests():
    after = edited(sets=["tokens=8"])
    assert after["requested_tokens"].tolist() == [8.0, 8.0, 8.0]
    assert after["tokens_ratio"].tolist()[:2] == [2.0, 1.0]


def test_without_spare_tokens_a_run_holds_no_more_than_it_requests():
    after = edited(scenario="no_spare")
    assert after["spare_tokens_available"].tolist() == [0.0, 0.0, 0.0]
    first = after.iloc[0]
    assert first["spare_tokens_mean"] == 0
    assert first["spare_tokens_sd"] == 0
    assert first["peak_tokens_mean"] == 4
    assert first["peak_tokens_sd"] == 1.0  # a third of the peak is left, and of its deviation
    assert first["mean_tokens_mean"] == 1.0  # 7 in use, of which 6 were spare
    assert first["min_tokens_mean"] == 3
    held = ["min_tokens_mean", "mean_tokens_mean", "peak_tokens_mean", "peak_tokens_sd", "spare_tokens_mean"]
    pd.testing.assert_series_equal(after.iloc[1][held], features().iloc[1][held])  # took none before


def test_a_spare_multiplier_caps_spare_tokens_at_so_many_times_the_request():
    after = edited(sets=["spare_multiplier=1"])
    assert after["spare_tokens_available"].tolist() == [4.0, 2.0, 5.0]  # the last: request unknown, left as it is
    assert after["spare_tokens_mean"].iloc[0] == 4
    assert after["peak_tokens_mean"].iloc[0] == 8  # 66 tokens and a multiple of 2 made 198 in the paper: 1 + m times
    assert after["mean_tokens_mean"].iloc[0] == 5


def test_a_wide_cap_changes_nothing():
    assert changed_columns(features(), edited(sets=["spare_multiplier=100"])) == []


def test_the_deviation_of_cpu_load_is_that_of_all_machines_and_of_each_sku_and_unknown_stays_unknown():
    after = edited(stds=["cpu_load=0"])
    assert after["load_sd"].tolist()[:2] == [0.0, 0.0]
    assert np.isnan(after["load_sd"].iloc[2])
    assert after["sku_load_sd_gen3"].iloc[0] == 0
    assert np.isnan(after["sku_load_sd_gen3"].iloc[1])
    assert changed_columns(features(), after) == ["load_sd", "sku_load_sd_gen3"]


def test_any_other_deviation_can_be_set_by_its_word():
    assert changed_columns(features(), edited(stds=["read_bytes=1"])) == ["read_bytes_sd"]


def test_even_load_is_the_mean_of_all_rows_everywhere():
    after = edited(scenario="even_load")
    assert after["load_mean"].tolist()[:2] == pytest.approx([0.55, 0.55])
    assert after["load_sd"].tolist()[:2] == [0.0, 0.0]
    assert np.isnan(after["load_mean"].iloc[2])


def test_edits_are_made_one_after_the_other():
    after = edited(scenario="no_spare", sets=["spare_tokens_available=3"])
    assert after["spare_tokens_available"].tolist() == [3.0, 3.0, 3.0]
    assert after["spare_tokens_mean"].iloc[0] == 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"sets": ["input_byte=1"]}, "the log has no feature 'input_byte'; expected one of input_bytes, "),
        ({"sets": ["load_mean=35"]}, "load_mean cannot be 35; expected a load from 0 to 2"),
        ({"sets": ["outlier_share_before=2"]}, "outlier_share_before cannot be 2; expected a share from 0 to 1"),
        ({"sets": ["hour_of_day=25"]}, "hour_of_day cannot be 25; expected an hour from 0 to 24"),
        ({"sets": ["load_mean=x4"]}, "load_mean cannot be 2.4"),
        ({"sets": ["input_bytes=-1"]}, "input_bytes cannot be -1; expected 0 or more"),
        (
            {"stds": ["input=0"]},
            "no standard deviation of 'input'; expected one of spare_tokens, peak_tokens, read_byt",
        ),
        ({"stds": ["cpu_load=35"]}, "load_sd cannot be 35; expected a deviation of the load from 0 to 1"),
        ({"scenario": "newest_sku"}, "the log has only the SKU gen3"),
    ],
)
def test_what_the_log_does_not_have_or_cannot_be_is_one_line(asked, message):
    with pytest.raises(BadInput) as caught:
        edited(**asked)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"scenario": "no_spare"}, "the log says nothing of spare tokens; expected a log with spare_tokens_available"),
        ({"scenario": "newest_sku"}, "the log says nothing of kinds of machine (SKUs)"),
        ({"scenario": "steady_load"}, "no standard deviation of 'cpu_load'; expected a log that has one"),
        ({"scenario": "even_load"}, "the log says nothing of the load"),
        ({"shifts": ["a:b"]}, "the log says nothing of kinds of machine (SKUs)"),
    ],
)
def test_a_log_of_few_columns_is_told_what_it_lacks(asked, message):
    few = pd.DataFrame({"n_before": [1.0], "hours_since_last": [2.0]})
    with pytest.raises(BadInput) as caught:
        apply(parse_scenario(PARAMS, **asked), few)
    assert message in str(caught.value)


def test_a_negative_logarithm_is_a_value_like_any_other():
    assert edited(sets=["log_ratio_mean=-0.5"])["log_ratio_mean"].tolist() == [-0.5, -0.5, -0.5]
