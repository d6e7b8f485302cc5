"""What is asked for becomes a scenario, or one line that says what is wrong; made true in features it changes exactly
what was asked for, with what follows from it, and nothing else."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.control.scenarios import apply, changed_columns, named_scenario, parse_scenario, skus_of

NAN = np.nan


def test_free_forms_are_read_and_kept_in_order_and_the_scenarios_of_the_paper_are_such_changes():
    scenario = parse_scenario(
        sets=["spare_multiplier=1", "input_bytes = x2", "queue=0"],
        shifts=["gen3:gen5", "all:gen6"],
        stds=["cpu_load=0"],
    )
    shifts = "shift-sku gen3:gen5, shift-sku all:gen6"
    assert str(scenario) == f"spare_multiplier=1, input_bytes=x2, queue=0, {shifts}, set-std cpu_load=0"
    for name, asked in (("no_spare", {"sets": ["spare_multiple=0"]}), ("steady_load", {"stds": ["cpu_load=0"]})):
        assert named_scenario(name).edits == parse_scenario(**asked).edits


def test_a_named_scenario_keeps_its_name_and_a_free_one_is_called_by_its_changes():
    assert parse_scenario(scenario="no_spare").name == "no_spare"
    both = parse_scenario(scenario="no_spare", sets=["queue_length=0"])
    assert both.name == str(both) == "spare_multiplier=0, queue_length=0"


def features():
    """Three runs: one takes spare tokens, one does not, one is the first of its job."""
    return pd.DataFrame(
        {
            "input_bytes": [100.0, 200.0, 400.0], "input_ratio": [1.0, 2.0, NAN], "requested_tokens": [4.0, 4.0, NAN],
            "tokens_ratio": [1.0, 0.5, NAN], "spare_tokens_available": [10.0, 2.0, 5.0], "load_mean": [0.5, 0.6, NAN],
            "load_sd": [0.3, 0.2, NAN], "sku_load_sd_gen3": [0.1, NAN, NAN], "min_tokens_mean": [3.0, 4.0, NAN],
            "mean_tokens_mean": [7.0, 4.0, NAN], "peak_tokens_mean": [12.0, 4.0, NAN],
            "spare_tokens_mean": [6.0, 0.0, NAN], "spare_tokens_sd": [2.0, 0.0, NAN],
            "peak_tokens_sd": [3.0, 0.5, NAN], "read_bytes_sd": [5.0, 6.0, NAN], "hour_of_day": [1.0, 2.0, 3.0],
            "log_ratio_mean": [0.0, -0.1, NAN], "outlier_share_before": [0.1, 0.0, NAN],
        },
        index=[7, 8, 9],
    )  # fmt: skip


def edited(**asked):
    return apply(parse_scenario(**asked), features())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "give --scenario (no_spare, newest_sku, steady_load, even_load), --set NAME=VALUE"),
        ({"scenario": "no_spam"}, "expected one of no_spare, newest_sku, steady_load, even_load"),
        ({"sets": ["queue_length"]}, "no '=' between two words; expected NAME=VALUE"),
        ({"sets": ["=3"]}, "no '=' between two words"),
        ({"sets": ["queue_length=many"]}, "'many' is not a number"),
        ({"sets": ["queue_length=nan"]}, "'nan' is not finite"),
        ({"sets": ["input_bytes=x0"]}, "a factor of 0; expected a factor above 0"),
        ({"sets": ["spare_multiplier=-1"]}, "-1 is no cap; expected a number from 0 on, times the tokens requested"),
        ({"sets": ["spare_multiplier=x2"]}, "x2 is no cap"),
        (
            {"sets": ["requested_runtime_s=x2"]},
            "--set requested_runtime_s=x2: a request is no cause: it tells what the user expects of the run; expected "
            "an allocation (tokens, spare_multiplier), a machine",
        ),
        ({"sets": ["requested_memory_bytes=1"]}, "a request is no cause"),
        ({"sets": ["walltime=x2"]}, "--set walltime=x2: a request is no cause"),
        ({"sets": ["memory=x2"]}, "a request is no cause"),
        ({"sets": ["estimated_cost=x2"]}, "an estimate is no cause"),
        ({"sets": ["hour_of_day=3"]}, "the clock is no cause"),
        *(
            ({"sets": [f"{name}=0"]}, "what earlier runs did is no cause")
            for name in ("log_ratio_mean", "job_median10", "user_request_last", "log_runs", "input_usual", "n_before")
        ),
        ({"sets": ["queue=1", "queue_length=2"]}, "queue_length is changed twice"),
        ({"scenario": "no_spare", "sets": ["spare_multiple=1"]}, "the cap of spare tokens is changed twice"),
        ({"shifts": ["gen3"]}, "no ':' between two words; expected FROM:TO"),
        ({"shifts": ["gen3:gen3"]}, "from a SKU to itself"),
        ({"stds": ["cpu_load=-1"]}, "a standard deviation of -1; expected 0 or more"),
        (
            {"sets": ["input_byte=1"]},
            "this log tells nothing of input_byte; expected a cause that it tells of: --set tokens=, --set input=",
        ),
        ({"sets": ["load_mean=35"]}, "load_mean cannot be 35; expected a load from 0 to 2"),
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
def test_what_cannot_be_read_nor_be_in_this_log_is_one_line_that_says_what_was_expected(asked, message):
    with pytest.raises(BadInput) as caught:
        edited(**asked)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_edit_changes_neither_the_frame_that_it_is_given_nor_its_columns_and_index():
    frame = features()
    after = apply(parse_scenario(scenario="no_spare"), frame)
    pd.testing.assert_frame_equal(frame, features())
    assert list(after) == list(frame)
    assert list(after.index) == [7, 8, 9]


def test_a_feature_set_is_the_same_in_every_row_and_nothing_else_changes():
    after = edited(sets=["load=1.2"])
    assert after["load_mean"].tolist() == [1.2, 1.2, 1.2]
    assert changed_columns(features(), after) == ["load_mean"]


def test_twice_the_input_is_twice_the_ratio_to_earlier_inputs():
    after = edited(sets=["input_bytes=x2"])
    assert after["input_bytes"].tolist() == [200.0, 400.0, 800.0]
    assert after["input_ratio"].tolist()[:2] == [2.0, 4.0]
    assert np.isnan(after["input_ratio"].iloc[2])


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


def test_the_deviation_of_cpu_load_is_that_of_all_machines_and_of_each_sku_and_unknown_stays_unknown():
    after = edited(stds=["cpu_load=0"])
    assert after["load_sd"].tolist()[:2] == [0.0, 0.0]
    assert np.isnan(after["load_sd"].iloc[2])
    assert after["sku_load_sd_gen3"].iloc[0] == 0
    assert np.isnan(after["sku_load_sd_gen3"].iloc[1])
    assert changed_columns(features(), after) == ["load_sd", "sku_load_sd_gen3"]


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
        ({"scenario": "no_spare"}, "this log tells nothing of spare tokens; expected a "),
        ({"scenario": "newest_sku"}, "the log says nothing of kinds of machine (SKUs)"),
        ({"scenario": "steady_load"}, "no standard deviation of 'cpu_load'; expected a log that has one"),
        ({"scenario": "even_load"}, "the log says nothing of the load"),
        ({"shifts": ["a:b"]}, "the log says nothing of kinds of machine (SKUs)"),
    ],
)
def test_a_log_of_few_columns_is_told_what_it_lacks(asked, message):
    few = pd.DataFrame({"n_before": [1.0], "hours_since_last": [2.0]})
    with pytest.raises(BadInput) as caught:
        apply(parse_scenario(**asked), few)
    assert message in str(caught.value)


def test_causes_are_set_by_the_names_that_a_log_has_for_them():
    frame = pd.DataFrame({"requested_tokens": [4.0], "own_scale": [2.0], "load_mean": [0.5]})
    after = apply(parse_scenario(sets=["cpus=x2", "scale=5"]), frame)
    assert (after["requested_tokens"].item(), after["own_scale"].item()) == (8.0, 5.0)
    with pytest.raises(BadInput, match="requested_tokens is changed twice"):
        parse_scenario(sets=["cpus=x2", "tokens=4"])
    with pytest.raises(BadInput) as caught:
        apply(parse_scenario(sets=["gpus=2"]), frame)
    assert str(caught.value) == (
        "what-if gpus: this log tells nothing of gpus; expected a cause that it tells of: --set cpus=, --set load=, "
        "--set scale=; limits, memory, estimates and earlier runs are no causes"
    )


def test_a_column_that_is_called_like_a_word_or_like_no_cause_is_offered_and_set_by_its_full_name():
    frame = pd.DataFrame({"own_memory": [4.0], "own_hit_ratio": [2.0], "own_scale": [1.0]})
    with pytest.raises(BadInput, match=r"--set own_memory=, --set own_hit_ratio=, --set scale=; limits"):
        apply(parse_scenario(sets=["gpus=2"]), frame)
    after = apply(parse_scenario(sets=["own_memory=x2", "own_hit_ratio=3"]), frame)
    assert after.loc[0].tolist() == [8.0, 3.0, 1.0]


def sku_features():
    """Four runs in order of submission: on both SKUs, on gen3 only, on gen10 only, the first of a job on both."""
    return pd.DataFrame(
        {
            "load_mean": [0.5, 0.8, 0.2, 0.4], "load_sd": [0.35, 0.1, 0.2, 0.3],
            "sku_load_mean_gen3": [0.8, 0.8, NAN, 0.5], "sku_load_mean_gen10": [0.2, NAN, 0.2, 0.3],
            "sku_load_sd_gen3": [0.1, 0.1, NAN, 0.1], "sku_load_sd_gen10": [0.25, NAN, 0.2, 0.15],
            "sku_free_tokens_gen3": [1.0, 0.0, NAN, 2.0], "sku_free_tokens_gen10": [5.0, NAN, 4.0, 3.0],
            "offered_gen3": [1.0, 1.0, 0.0, 1.0], "offered_gen10": [1.0, 0.0, 1.0, 1.0],
            "n_vertices_mean": [6.0, 2.0, 3.0, NAN], "vertices_gen3_mean": [4.0, 2.0, 0.0, NAN],
            "vertices_gen10_mean": [2.0, 0.0, 3.0, NAN], "vertex_share_gen3_mean": [2 / 3, 1.0, 0.0, NAN],
            "vertex_share_gen10_mean": [1 / 3, 0.0, 1.0, NAN],
        }
    )  # fmt: skip


def shifted(text="gen3:gen10", frame=None):
    return apply(parse_scenario(shifts=[text]), sku_features() if frame is None else frame)


def test_skus_are_those_that_features_name_in_order_of_their_numbers():
    assert skus_of(sku_features()) == ["gen3", "gen10"]
    assert skus_of(pd.DataFrame({"n_vertices_mean": [1.0], "load_mean": [1.0]})) == []


def test_all_vertices_and_shares_of_one_sku_arrive_at_the_other_and_their_sum_stays():
    after = shifted()
    assert after["vertices_gen3_mean"].tolist()[:3] == [0, 0, 0]
    assert after["vertices_gen10_mean"].tolist()[:3] == [6, 2, 3]
    assert after["vertex_share_gen10_mean"].tolist()[:3] == pytest.approx([1, 1, 1])
    assert np.isnan(after["vertices_gen10_mean"].iloc[3])
    assert after["n_vertices_mean"].equals(sku_features()["n_vertices_mean"])


def test_the_offer_moves_and_what_is_no_longer_offered_is_unknown_as_in_the_log():
    after = shifted()
    assert after["offered_gen3"].tolist() == [0, 0, 0, 0]
    assert after["offered_gen10"].tolist() == [1, 1, 1, 1]
    assert after[["sku_load_mean_gen3", "sku_load_sd_gen3", "sku_free_tokens_gen3"]].isna().all(axis=None)


def test_a_sku_not_offered_before_has_the_load_that_the_run_before_saw_there():
    after = shifted()
    assert after["sku_load_mean_gen10"].tolist() == [0.2, 0.2, 0.2, 0.3]
    assert after["sku_free_tokens_gen10"].tolist() == [5, 5, 4, 3]


def test_the_load_of_a_moved_run_is_that_of_the_skus_left_to_it():
    after = shifted()
    assert after["load_mean"].tolist() == pytest.approx([0.2, 0.2, 0.2, 0.3])
    assert after["load_sd"].tolist() == pytest.approx([0.25, 0.25, 0.2, 0.15])


def test_load_over_two_skus_is_pooled_over_them_and_over_time():
    frame = sku_features().assign(offered_gen4=[1.0, 0, 0, 0], sku_load_mean_gen4=0.4, sku_load_sd_gen4=0.0)
    after = shifted("gen4:gen10", frame)
    # gen3 and gen10 are left: means 0.8 and 0.2, deviations 0.1 and 0.25
    assert after["load_mean"].iloc[0] == pytest.approx(0.5)
    assert after["load_sd"].iloc[0] == pytest.approx(np.sqrt((0.01 + 0.0625) / 2 + 0.09))


def test_a_run_with_nothing_on_the_sku_stays_as_it_was():
    pd.testing.assert_series_equal(shifted().iloc[2], sku_features().iloc[2])


def test_newest_sku_takes_from_all_others_and_is_the_last_by_name_unless_named():
    frame = sku_features().assign(vertices_gen4_mean=[1.0, 0, 0, NAN])
    newest = apply(parse_scenario(scenario="newest_sku"), frame)
    assert newest["vertices_gen10_mean"].tolist()[:3] == [7, 2, 3]
    oldest = shifted("all:gen3", frame)
    assert oldest["vertices_gen3_mean"].tolist()[:3] == [7, 2, 3]


def test_a_log_with_vertices_but_no_offers_moves_its_vertices():
    after = shifted(frame=sku_features()[["vertices_gen3_mean", "vertices_gen10_mean"]])
    assert after["vertices_gen10_mean"].tolist()[:3] == [6, 2, 3]


@pytest.mark.parametrize("text", ["gen5:gen10", "gen3:gen5", "all:gen5"])
def test_an_unknown_sku_is_named_beside_those_that_there_are(text):
    with pytest.raises(BadInput, match=r"the log has no SKU 'gen5'; expected one of gen3, gen10"):
        shifted(text)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("offered_gen10=0.5", r"0 \(not offered\) or 1"),
        ("requested_tokens=0", "more than 0"),
        ("vertex_share_gen10_mean=1.1", "a share from 0 to 1"),
        ("sku_load_mean_gen10=35", "a load from 0 to 2, where 1 is all that there is"),
    ],
)
def test_values_that_no_run_can_have_are_refused_with_the_range_in_words(asked, expected):
    frame = sku_features().assign(requested_tokens=4.0)
    with pytest.raises(BadInput, match=f"cannot be .*; expected {expected}"):
        apply(parse_scenario(sets=[asked]), frame)
