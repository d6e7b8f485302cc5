"""Reasons in words: what is said, of what, beside what is usual."""

import math

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

from tasks.jobs.explain.contributions import Contributions, contributions
from tasks.jobs.explain.reasons import (
    Typical,
    explain_run,
    in_words,
    is_as_usual,
    multiple_of,
    typical_values,
    words_of,
)

NAMES = ("input_bytes", "input_ratio", "load_mean", "requested_tokens", "queue_length")
USUAL = [[1.5e9, 1.0, 0.5, 6.0, 3.0]] * 3 + [[4e9, 1.0, 0.5, 2.0, 3.0]] * 3


def explain(added, values, *, job="a", base=0.1, **more):
    frame = pd.DataFrame([values], columns=list(NAMES))
    parts = Contributions(np.array(added, dtype=float)[None, :, None], np.array([[base]]), NAMES)
    typical = typical_values(pd.DataFrame(USUAL, columns=list(NAMES)), ["a"] * 3 + ["b"] * 3)
    return explain_run(parts, frame, job, typical, **more)


def test_reasons_worked_out_by_hand():
    added = [math.log(1.2), math.log(1.5), math.log(1.3), -math.log(2.0), 0.001]
    found = explain(added, [3.2e9, 2.13, 0.9, 6.0, 4.0])
    assert [one.text for one in found.reasons] == [
        "tokens (processors) that were asked for: 6 tokens, 1.5 times the usual 4 tokens of all runs: "
        "makes it 0.5 times as long",
        "input of this run: 3.2 GB, 2.1 times the usual 1.5 GB of the job: makes it 1.8 times as long",
        "load of the machines at submission: 90.0 %, usual for the job 50.0 %: makes it 1.3 times as long",
    ]
    assert [one.factor for one in found.reasons] == pytest.approx([0.5, 1.8, 1.3])
    assert found.rest == pytest.approx(0.001)


def test_base_reasons_and_rest_add_up_to_the_prediction():
    found = explain([0.3, 0.2, -0.4, 0.1, 0.05], [3e9, 2.0, 0.9, 6.0, 4.0], most=2)
    assert len(found.reasons) == 2
    assert found.base + sum(one.contribution for one in found.reasons) + found.rest == pytest.approx(found.prediction)
    assert found.prediction == pytest.approx(0.1 + 0.25)


def test_correlated_features_do_not_split_a_reason():
    """Each of the two of the input adds less than the load, together they add more."""
    found = explain([0.3, 0.3, 0.4, 0.0, 0.0], [3e9, 2.0, 0.9, 6.0, 4.0])
    assert [one.family for one in found.reasons] == ["input", "load"]
    assert found.reasons[0].parts == {"input_bytes": 0.3, "input_ratio": 0.3}


def test_on_the_scale_of_odds_the_effect_is_on_the_odds():
    found = explain([0.0, 0.0, math.log(3), -math.log(2), 0.0], [1.5e9, 1.0, 0.9, 8.0, 3.0], scale="odds")
    assert found.reasons[0].text.endswith(": multiplies the odds of a variable runtime by 3")
    assert found.reasons[1].text.endswith(": lowers the odds of a variable runtime to 0.5 times")


def test_a_small_effect_is_said_with_two_decimals_and_none_under_five_percent():
    found = explain([0.06, 0.0, 0.0, 0.0, 0.0], [3e9, 2.0, 0.5, 6.0, 3.0])
    assert found.reasons[0].text.endswith("makes it 1.06 times as long")
    assert explain([0.04, 0.0, 0.0, 0.0, 0.0], [3e9, 2.0, 0.5, 6.0, 3.0]).reasons == ()


def test_an_unknown_value_and_an_unknown_job_are_said_to_be_so():
    found = explain([0.0, 0.0, 0.5, 0.4, 0.0], [3e9, 2.0, math.nan, 8.0, 3.0], job="new")
    assert found.reasons[0].text.startswith("load of the machines at submission: unknown, usual for all runs 50.0 %: m")
    assert "8 tokens, 2 times the usual 4 tokens of all runs" in found.reasons[1].text


def test_a_ratio_stands_for_itself_where_the_amount_is_unknown():
    found = explain([0.0, 0.5, 0.0, 0.0, 0.0], [math.nan, 2.0, 0.5, 6.0, 3.0])
    assert found.reasons[0].feature == "input_ratio"
    assert "2 ×, usual for the job 1 ×" in found.reasons[0].text


def test_other_features_of_the_family_are_counted_where_they_matter():
    names = ("load_mean", "sku_load_mean_gen3", "load_sd")
    parts = Contributions(np.array([0.3, 0.2, 0.2])[None, :, None], np.zeros((1, 1)), names)
    frame = pd.DataFrame([[0.9, 0.9, 0.2]], columns=list(names))
    found = explain_run(parts, frame, "a", typical_values(frame / 2, ["a"]))
    assert found.reasons[0].text.endswith(": makes it 2 times as long, with 2 more on load")


def test_a_value_that_is_as_usual_does_not_stand_for_its_family_where_another_tells_more():
    names = ("load_mean", "load_sd")
    frame = pd.DataFrame([[0.5, 0.4]] + [[0.5, 0.2]] * 3, columns=list(names))
    parts = Contributions(np.array([0.3, 0.2])[None, :, None], np.zeros((1, 1)), names)
    typical = typical_values(frame.iloc[1:], ["a"] * 3)
    found = explain_run(parts, frame, "a", typical)
    assert found.reasons[0].feature == "load_sd"
    little = Contributions(np.array([0.3, 0.02])[None, :, None], np.zeros((1, 1)), names)
    assert explain_run(little, frame, "a", typical).reasons == ()


def test_what_is_as_usual_or_said_alike_is_no_reason_but_stays_in_the_sum():
    names = ("outlier_share_before",)
    frame = pd.DataFrame([[1e-5]] + [[4e-5]] * 3, columns=list(names))
    parts = Contributions(np.array([[[0.3]]]), np.zeros((1, 1)), names)
    found = explain_run(parts, frame, "a", typical_values(frame.iloc[1:], ["a"] * 3))
    assert (found.reasons, found.rest) == ((), 0.3)


def test_of_a_logarithm_what_counts_is_what_it_is_of():
    """Half as long again is not as usual, though its logarithm differs by 4 %; 5 % more is."""
    assert not is_as_usual("job_median10", math.log(49_000), math.log(32_760))
    assert is_as_usual("job_median10", math.log(34_000), math.log(32_760))
    assert not is_as_usual("load_mean", math.nan, math.nan)
    frame = pd.DataFrame({"job_median10": [math.log(32_760)] * 4})
    parts = Contributions(np.array([[[math.log(0.88)]]]), np.zeros((1, 1)), ("job_median10",))
    within = typical_values(frame, ["a"] * 4)
    assert explain_run(parts, frame, "a", within).reasons == ()  # no "9.1 h, as usual: makes it 0.88 times as long"
    [reason] = explain_run(parts, frame + math.log(0.5), "a", within).reasons
    assert reason.text == (
        "median runtime of the last 10 runs of the job: 4.5 h, 0.5 times the usual 9.1 h of the job: "
        "makes it 0.88 times as long"
    )


def test_within_a_job_nothing_is_compared_with_other_jobs():
    usual = typical_values(pd.DataFrame({"load_mean": [0.5] * 3 + [0.1] * 3}), ["a"] * 3 + ["b"] * 3)
    assert usual.beside("load_mean", 0.5, "a") == (pytest.approx(0.3), "all runs")
    within = Typical(usual.by_job, usual.overall, is_within_job=True)
    assert within.beside("load_mean", 0.5, "a") == (pytest.approx(0.5), "the job")
    assert within.beside("load_mean", 0.5, "new") == (pytest.approx(0.3), "all runs")


def test_a_run_on_which_nothing_has_an_effect_has_no_reasons():
    found = explain([0.0] * 5, [3e9, 2.0, 0.9, 6.0, 4.0])
    assert (found.reasons, found.rest, found.prediction) == ((), 0.0, 0.1)


def test_a_job_counts_once_in_what_is_usual_for_all_and_two_runs_make_no_habit():
    frame = pd.DataFrame({"load_mean": [0.1] * 9 + [0.5] * 3 + [0.9] * 2})
    typical = typical_values(frame, ["a"] * 9 + ["b"] * 3 + ["c"] * 2)
    assert typical.overall["load_mean"] == pytest.approx(0.3)
    assert typical.beside("load_mean", 0.7, "c") == (pytest.approx(0.3), "all runs")
    assert typical.beside("load_mean", 0.7, "a") == (pytest.approx(0.1), "the job")


def test_a_model_of_known_factors_gives_them_back():
    """Runtime doubles with twice the input and grows by e^load: the factors between two runs are 4 and e^0.6."""
    rng = np.random.default_rng(2)
    n = 4000
    frame = pd.DataFrame({"input_bytes": 10 ** rng.uniform(6, 9, n), "load_mean": rng.uniform(0, 1, n)})
    frame["hour_of_day"] = rng.uniform(0, 24, n)
    target = np.log(frame["input_bytes"]) + frame["load_mean"]
    params = {"num_leaves": 31, "learning_rate": 0.1, "verbose": -1, "num_threads": 1, "seed": 1}
    booster = lgb.train(params, lgb.Dataset(frame, target), 150)
    asked = pd.DataFrame(
        {"input_bytes": [2e7, 8e7], "load_mean": [0.2, 0.8], "hour_of_day": [3.0, 3.0]}, index=["one", "other"]
    )
    parts = contributions(booster, asked.to_numpy(), tuple(asked), 1)
    typical = typical_values(frame, np.repeat("a", n))
    one, other = (
        {
            reason.family: reason.contribution
            for reason in explain_run(parts.rows([row]), asked.iloc[[row]], "a", typical).reasons
        }
        for row in (0, 1)
    )
    assert math.exp(other["input"] - one["input"]) == pytest.approx(4.0, rel=0.1)
    assert other["load"] - one["load"] == pytest.approx(0.6, abs=0.1)
    assert "calendar" not in one


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("input_bytes", 3.2e9, "3.2 GB"),
        ("input_bytes", 999.0, "999 B"),
        ("input_bytes", math.nan, "unknown"),
        ("input_ratio", 2.1, "2.1 ×"),
        ("requested_tokens", 6.0, "6 tokens"),
        ("requested_tokens", 1.0, "1 token"),
        ("n_vertices_mean", 1.0, "1 vertex"),
        ("n_vertices_mean", 0.0, "0 vertices"),
        ("requested_runtime_s", 90.0, "90 s"),
        ("hours_since_last", 0.5, "30 min"),
        ("load_mean", 0.823, "82.3 %"),
        ("sku_load_sd_gen4", 0.5, "50.0 %"),
        ("vertex_share_gen4_mean", 1.0, "100.0 %"),
        ("outlier_share_before", 0.05, "5.0 %"),
        ("shape_ratio_7", 4.7e-8, "< 0.1 %"),
        ("recent_shape_delta_0", 1.0, "100.0 %"),
        ("log_median_before", math.log(5400.0), "90 min"),
        ("user_request_last", math.log(90.0), "90 s"),
        ("input_usual", math.log(5400.0), "90 min"),
        ("job_runs", math.log(21.0), "20"),
        ("log_since", math.log(61.0), "60 s"),
        ("request_limit_share", math.log(0.5), "50.0 %"),
        ("log_ratio_mean", math.log(1.5), "1.5 ×"),
        ("last_log_ratio", 0.0, "1 ×"),
        ("ewma_log_ratio", math.log(3.0), "3 ×"),
        ("p25_p75_before", 0.4, "0.4 ×"),
        ("hour_of_day", 14.5, "14:30"),
        ("hour_of_day", 23.999, "00:00"),
        ("day_of_week", 1.0, "Tuesday"),
        ("offered_gen3", 0.0, "no"),
        ("op_WINDOW", 2.0, "2 operators"),
        ("colour", 3.0, "3"),
        ("other_bytes", 2000.0, "2 kB"),
    ],
)
def test_a_value_is_said_with_its_unit(name, value, text):
    assert in_words(name, value) == text


def test_bytes_have_decimal_prefixes_and_an_end():
    said = [in_words("input_bytes", value) for value in (0, 1e3, 1.5e6, 2e12, 3e18)]
    assert said == ["0 B", "1 kB", "1.5 MB", "2 TB", "3,000 PB"]


def test_amounts_are_compared_as_multiples_and_shares_are_not():
    assert multiple_of("input_bytes", 6.0, 2.0) == pytest.approx(3.0)
    assert multiple_of("log_median_before", math.log(6.0), math.log(2.0)) == pytest.approx(3.0)
    for name in ("load_mean", "shape_ratio_7", "hour_of_day", "day_of_week", "offered_gen3", "input_ratio"):
        assert multiple_of(name, 2.0, 1.0) is None
    assert multiple_of("requested_tokens", 2.0, 0.0) is None
    assert multiple_of("requested_tokens", math.nan, 1.0) is None


def test_the_note_that_a_feature_is_a_logarithm_is_left_out_since_its_value_is_said_without():
    assert words_of("log_median_before") == "median runtime of the job before"
    assert words_of("last_log_ratio") == "runtime of the last run against the job's median"


def test_a_feature_without_words_is_said_by_its_name():
    assert words_of("moon_phase") == "moon phase"
