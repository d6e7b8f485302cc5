"""Reasons by a trained model: on a log in which big inputs and load make runs long, and nothing else does."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tasks.errors import NotFound
from tasks.jobs.control.answering import ask_source
from tasks.jobs.control.scenarios import parse_scenario
from tasks.jobs.explain.contributions import Contributions, runtime_parts, shape_parts, variable_parts, variable_shapes
from tasks.jobs.explain.reasons import (
    USUAL_RUNS,
    Typical,
    explain_next,
    explain_next_of,
    explain_past,
    explain_run,
    explain_run_of,
    in_words,
    is_as_usual,
    load_explainer,
    multiple_of,
    words_of,
)
from tasks.jobs.params import OutlookParams, WhatIfParams
from tasks.jobs.predict.peers import JOB
from tasks.jobs.predict.predicting import job_outlook
from tasks.warehouse.connection import writing
from tasks.warehouse.place import Warehouse

NAMES = ("input_bytes", "input_ratio", "load_mean", "requested_tokens", "queue_length")
OF_JOB = pd.Series({"input_bytes": 1.5e9, "input_ratio": 1.0, "load_mean": 0.5, "queue_length": 3.0})
OVERALL = pd.Series([2.75e9, 1.0, 0.5, 4.0, 3.0], list(NAMES))
NEW = pd.Series(dtype=float)


def explain(added, values, *, of_job=OF_JOB, base=0.1, **more):
    frame = pd.DataFrame([values], columns=list(NAMES))
    parts = Contributions(np.array(added, dtype=float)[None, :, None], np.array([[base]]), NAMES)
    return explain_run(parts, frame, Typical(of_job, OVERALL), **more)


def test_reasons_worked_out_by_hand():
    added = [math.log(1.2), math.log(1.5), math.log(1.3), -math.log(2.0), 0.001]
    found = explain(added, [3.2e9, 2.13, 0.9, 6.0, 4.0])
    assert [one.text for one in found.reasons] == [
        "processors (tokens) asked for: 6 processors, 1.5 times the usual 4 processors of all runs: "
        "makes it 0.5 times as long",
        "input of this run: 3.2 GB, 2.1 times the usual 1.5 GB of the job: makes it 1.8 times as long",
        "load of the machines at submission: 90.0 %, usual for the job 50.0 %: makes it 1.3 times as long",
    ]
    assert [one.factor for one in found.reasons] == pytest.approx([0.5, 1.8, 1.3])
    assert found.rest == pytest.approx(0.001)


def test_correlated_features_do_not_split_a_reason():
    """Each of the two of the input adds less than the load, together they add more."""
    found = explain([0.3, 0.3, 0.4, 0.0, 0.0], [3e9, 2.0, 0.9, 6.0, 4.0])
    assert [one.family for one in found.reasons] == ["input", "load"]
    assert found.reasons[0].parts == {"input_bytes": 0.3, "input_ratio": 0.3}


def test_on_the_scale_of_odds_the_effect_is_on_the_odds():
    found = explain([0.0, 0.0, math.log(3), -math.log(2), 0.0], [1.5e9, 1.0, 0.9, 8.0, 3.0], scale="odds")
    assert found.reasons[0].text.endswith(": makes a variable runtime more likely (odds × 3)")
    assert found.reasons[1].text.endswith(": makes a variable runtime less likely (odds × 0.5)")


def test_a_small_effect_is_said_with_two_decimals_and_none_under_five_percent():
    found = explain([0.06, 0.0, 0.0, 0.0, 0.0], [3e9, 2.0, 0.5, 6.0, 3.0])
    assert found.reasons[0].text.endswith("makes it 1.06 times as long")
    assert explain([0.04, 0.0, 0.0, 0.0, 0.0], [3e9, 2.0, 0.5, 6.0, 3.0]).reasons == ()


def test_an_unknown_value_and_an_unknown_job_are_said_to_be_so():
    found = explain([0.0, 0.0, 0.5, 0.4, 0.0], [3e9, 2.0, math.nan, 8.0, 3.0], of_job=NEW)
    assert found.reasons[0].text.startswith("load of the machines at submission: unknown, usual for all runs 50.0 %: m")
    assert "8 processors, 2 times the usual 4 processors of all runs" in found.reasons[1].text


def test_a_ratio_stands_for_itself_where_the_amount_is_unknown():
    found = explain([0.0, 0.5, 0.0, 0.0, 0.0], [math.nan, 2.0, 0.5, 6.0, 3.0])
    assert found.reasons[0].feature == "input_ratio"
    assert "2 ×, usual for the job 1 ×" in found.reasons[0].text


def test_other_features_of_the_family_are_counted_where_they_matter():
    names = ("load_mean", "sku_load_mean_gen3", "load_sd")
    parts = Contributions(np.array([0.3, 0.2, 0.2])[None, :, None], np.zeros((1, 1)), names)
    frame = pd.DataFrame([[0.9, 0.9, 0.2]], columns=list(names))
    found = explain_run(parts, frame, Typical(frame.iloc[0] / 2, OVERALL))
    assert found.reasons[0].text.endswith(": makes it 2 times as long, with 2 more on load")


def test_a_value_that_is_as_usual_does_not_stand_for_its_family_where_another_tells_more():
    names = ("load_mean", "load_sd")
    frame, typical = pd.DataFrame([[0.5, 0.4]], columns=list(names)), Typical(pd.Series([0.5, 0.2], names), OVERALL)
    parts = Contributions(np.array([0.3, 0.2])[None, :, None], np.zeros((1, 1)), names)
    found = explain_run(parts, frame, typical)
    assert found.reasons[0].feature == "load_sd"
    little = Contributions(np.array([0.3, 0.02])[None, :, None], np.zeros((1, 1)), names)
    assert explain_run(little, frame, typical).reasons == ()


def test_what_is_as_usual_or_said_alike_is_no_reason_but_stays_in_the_sum():
    names = ("outlier_share_before",)
    frame = pd.DataFrame([[1e-5]], columns=list(names))
    parts = Contributions(np.array([[[0.3]]]), np.zeros((1, 1)), names)
    found = explain_run(parts, frame, Typical(pd.Series([4e-5], names), OVERALL))
    assert (found.reasons, found.rest) == ((), 0.3)


def test_of_a_logarithm_what_counts_is_what_it_is_of():
    """Half as long again is not as usual, though its logarithm differs by 4 %; 5 % more is."""
    assert not is_as_usual("job_median10", math.log(49_000), math.log(32_760))
    assert is_as_usual("job_median10", math.log(34_000), math.log(32_760))
    assert not is_as_usual("load_mean", math.nan, math.nan)
    frame = pd.DataFrame({"job_median10": [math.log(32_760)]})
    parts = Contributions(np.array([[[math.log(0.88)]]]), np.zeros((1, 1)), ("job_median10",))
    within = Typical(frame.iloc[0], OVERALL)
    assert explain_run(parts, frame, within).reasons == ()  # no "9.1 h, as usual: makes it 0.88 times as long"
    [reason] = explain_run(parts, frame + math.log(0.5), within).reasons
    assert reason.text == (
        "median runtime of the last 10 runs of the job: 4.5 h, before earlier runs of the job 9.1 h: "
        "makes it 0.88 times as long"
    )
    [reason] = explain_run(parts, frame + math.log(2.0), within).reasons
    assert "18.2 h, 2 times the 9.1 h before earlier runs of the job: makes it" in reason.text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("input_bytes", 3.2e9, "3.2 GB"), ("input_bytes", 999.0, "999 B"), ("input_bytes", math.nan, "unknown"),
        ("input_ratio", 2.1, "2.1 ×"), ("requested_tokens", 6.0, "6 processors"),
        ("requested_tokens", 1.0, "1 processor"),
        ("n_vertices_mean", 1.0, "1 vertex"), ("n_vertices_mean", 0.0, "0 vertices"),
        ("requested_runtime_s", 90.0, "90 s"), ("hours_since_last", 0.5, "30 min"), ("load_mean", 0.823, "82.3 %"),
        ("sku_load_sd_gen4", 0.5, "50.0 %"), ("vertex_share_gen4_mean", 1.0, "100.0 %"),
        ("outlier_share_before", 0.05, "5.0 %"), ("shape_ratio_7", 4.7e-8, "< 0.1 %"),
        ("recent_shape_delta_0", 1.0, "100.0 %"), ("log_median_before", math.log(5400.0), "90 min"),
        ("user_request_last", math.log(90.0), "90 s"), ("input_usual", math.log(5400.0), "90 min"),
        ("job_runs", math.log(21.0), "20"), ("log_since", math.log(61.0), "60 s"),
        ("request_limit_share", math.log(0.5), "50.0 %"), ("log_ratio_mean", math.log(1.5), "1.5 ×"),
        ("last_log_ratio", 0.0, "1 ×"), ("ewma_log_ratio", math.log(3.0), "3 ×"), ("p25_p75_before", 0.4, "0.4 ×"),
        ("hour_of_day", 14.5, "14:30"), ("hour_of_day", 23.999, "00:00"), ("day_of_week", 1.0, "Tuesday"),
        ("offered_gen3", 0.0, "no"), ("op_WINDOW", 2.0, "2 operators"), ("colour", 3.0, "3"),
        ("other_bytes", 2000.0, "2 kB"),
    ],
)  # fmt: skip
def test_a_value_is_said_with_its_unit(name, value, text):
    assert in_words(name, value) == text


def test_amounts_are_compared_as_multiples_and_shares_are_not():
    assert multiple_of("input_bytes", 6.0, 2.0) == pytest.approx(3.0)
    assert multiple_of("log_median_before", math.log(6.0), math.log(2.0)) == pytest.approx(3.0)
    for name in ("load_mean", "shape_ratio_7", "hour_of_day", "day_of_week", "offered_gen3", "input_ratio"):
        assert multiple_of(name, 2.0, 1.0) is None
    assert multiple_of("requested_tokens", 2.0, 0.0) is None
    assert multiple_of("requested_tokens", math.nan, 1.0) is None


def test_a_feature_without_words_is_said_by_its_name():
    assert words_of("moon_phase") == "moon phase"


@pytest.fixture(scope="module")
def varied(trained_home):
    """Of a log whose jobs have two shapes, so that there are classifiers."""
    found = load_explainer(Warehouse(home=trained_home, memory_mb=256, threads=1), "log")
    assert set(found.trained.classifiers) == {"ratio", "delta"}
    return found


def explain_one(explainer, run_id):
    runs = explainer.runs
    return explain_past(explainer, runs[runs["run_id"] == run_id])[0]


def last_of(explainer, cause):
    runs = explainer.runs
    return str(runs["run_id"][runs["recorded_cause"] == cause].iloc[-1])


def test_three_times_the_input_is_the_first_reason_of_a_run(explainer):
    found = explain_one(explainer, last_of(explainer, "big_input"))
    first = found.runtime.reasons[0]
    assert first.family == "input"
    assert first.feature == "input_bytes"
    assert 2 < first.factor < 3.5
    assert "times the usual 1 MB of the job: makes it" in first.text
    assert 2 < found.expected_s / found.usual_s < 3.5


def test_reasons_lead_from_the_usual_runs_to_the_mean_that_is_predicted(explainer):
    run = explainer.runs[explainer.runs["run_id"] == last_of(explainer, "big_input")]
    found, trained = explain_past(explainer, run)[0], explainer.trained
    told = found.runtime
    assert told.base + sum(one.contribution for one in told.reasons) + told.rest == pytest.approx(told.prediction)
    quantiles = trained.model.quantiles(*trained.known(run, explainer.runs))
    assert told.prediction == pytest.approx(quantiles.mean(), abs=0.02)


@pytest.mark.parametrize("is_one_enough", [False, True])
@pytest.mark.parametrize("is_relative", [False, True])
def test_what_features_add_is_the_mean_of_the_pool(explainer, is_relative, is_one_enough):
    """Whatever the weights, with peers that a run does not have, an unusual one alone, and of relative trees."""
    trained, runs = explainer.trained, explainer.runs
    rows = runs.iloc[[0, 3, 300, 700, 899]]
    features, known = trained.known(rows, runs)
    known.log_s[JOB][2] = [15.0, *[np.nan] * (len(known.log_s[JOB][2]) - 1)]
    weights = {"boosted": 0.5, "job, last 30": 0.3, "job": 0.2, "user and request": 0.0}
    for some in (weights, {"boosted": 1.0}, {"boosted": 0.0, "job": 1.0}, {"boosted": 0.1, "user and request": 0.9}):
        some = {part: (weight,) * 4 for part, weight in some.items()}
        chosen = {"is_relative": is_relative, "is_one_enough": is_one_enough}
        model = replace(trained.model, weights=some, usual_log_s=3.0, ends=0.0, **chosen)
        parts = runtime_parts(model, features, known)
        if list(some) == ["boosted"]:
            assert parts.raw[:, 0] == pytest.approx(model.expected_log_s(features))
        means = model.quantiles(features, known).mean(axis=1)
        assert parts.raw[:, 0] == pytest.approx(means, abs=0.05)  # a hundred quantiles stand for the mixture


def test_later_runs_change_no_reason(explainer):
    """What is told of a run is what could have been told when it was submitted."""
    run_id = explainer.runs["run_id"].iloc[700]
    earlier = replace(explainer, runs=explainer.runs.iloc[:701])
    assert explain_one(explainer, run_id) == explain_one(earlier, run_id)


def test_runs_are_explained_together_as_each_by_itself(explainer):
    runs = explainer.runs
    rows = runs.iloc[[899, 8]]
    assert explain_past(explainer, rows) == [explain_one(explainer, run_id) for run_id in rows["run_id"]]
    keys = sorted(runs["group_key"].unique())[:2]
    together = explain_next(explainer, keys)
    assert [one.group_key for one in together] == keys
    assert together == [explain_next(explainer, [key])[0] for key in keys]


def test_a_run_is_found_by_its_id_and_a_job_by_its_key(caused_log, explainer):
    run_id = last_of(explainer, "load")
    found = explain_one(explainer, run_id)
    assert explain_run_of(caused_log, "log", run_id) == found
    assert explain_next_of(caused_log, "log", found.group_key) == explain_next(explainer, [found.group_key])[0]


def test_the_next_run_is_explained_by_the_conditions_of_the_last_ones(explainer):
    key = explainer.runs["group_key"].iloc[0]
    [found] = explain_next(explainer, [key])
    assert (found.run_id, found.runtime_s, found.n_conditions, found.n_usual) == (None, None, 10, USUAL_RUNS)
    assert found.submitted_at > explainer.runs["ended_at"].max()
    assert found.usual_s == explainer.runs["runtime_s"][explainer.runs["group_key"] == key].median()


def test_predict_explain_and_what_if_say_one_median_of_the_next_run(caused_log, explainer):
    key = explainer.runs["group_key"].iloc[1]
    [found] = explain_next(explainer, [key])
    told = job_outlook(caused_log, "log", key, OutlookParams())
    [median] = [limit.predicted_s for limit in told.limits if limit.level == 0.5]
    what_if = ask_source(caused_log, "log", job=key).answer(parse_scenario(sets=["input=x2"]), WhatIfParams())
    assert found.expected_s == median == what_if.outcome.changes.loc["median_s", "before"]
    assert found.usual_s == told.usual_s


def test_the_first_run_of_a_job_is_compared_with_all_runs(explainer):
    found = explain_one(explainer, explainer.runs["run_id"].iloc[0])
    assert found.n_usual == 0
    assert math.isnan(found.usual_s)


def test_contributions_to_shapes_give_the_probabilities_of_the_classifier(varied):
    trained = varied.trained
    features = trained.features(varied.runs.tail(50), varied.runs)
    for classifier in trained.classifiers.values():
        parts = shape_parts(classifier, features)
        assert softmax(parts.raw, axis=1) == pytest.approx(classifier.predict_proba(features), abs=1e-9)
        variable = list(variable_shapes(parts.k))
        odds = variable_parts(classifier, features)
        p = classifier.predict_proba(features)[:, variable].sum(axis=1)
        assert odds.raw[:, 0] == pytest.approx(np.log(p / (1 - p)), abs=1e-3)


def test_evidence_worked_out_by_hand(varied):
    """Trees to the power 0.5, all earlier runs to the power 2: 2 log(2 e) from evidence e of two shapes."""
    trained = varied.trained
    classifier = replace(trained.classifiers["ratio"], evidence=(("one", "two"),), evidence_powers=(0.5, 2.0))
    features = trained.features(varied.runs.tail(3), varied.runs).assign(one=[0.5, 0.9, 0.0], two=[0.5, 0.1, 1.0])
    parts = shape_parts(classifier, features)
    one = parts.added[:, parts.features.index("one"), 0]
    assert one == pytest.approx([0.0, 2 * np.log(1.8), 2 * np.log(2e-4)])  # never less than 1e-4
    assert parts.added[:, parts.features.index("one"), 1].tolist() == [0.0, 0.0, 0.0]
    assert softmax(parts.raw, axis=1) == pytest.approx(classifier.predict_proba(features), abs=1e-9)


def test_a_job_that_varied_has_high_odds_of_a_variable_shape_for_that_reason(varied):
    runs = varied.runs
    found = {n: explain_one(varied, runs["run_id"].iloc[-12 + n]) for n in (0, 1)}
    assert found[1].chance > 0.5 > found[0].chance
    assert found[1].variation.scale == "odds"
    assert found[1].variation.reasons[0].family == "history"
    assert "makes a variable runtime more likely (odds × " in found[1].variation.reasons[0].text


def test_runs_that_go_on_or_failed_are_explained_too(caused_log):
    """What was known at submission is all that is asked of a run."""
    finished = explain_run_of(caused_log, "log", "batch-000-000899")
    with writing(caused_log) as connection:
        connection.execute("UPDATE jobs.runs SET status = 'failed' WHERE run_id = 'batch-000-000899'")
    assert explain_run_of(caused_log, "log", "batch-000-000899").runtime == finished.runtime
    with writing(caused_log) as connection:
        connection.execute(
            """UPDATE jobs.runs SET status = 'running', runtime_s = NULL, ended_at = NULL
            WHERE run_id = 'batch-000-000899'"""
        )
    found = explain_run_of(caused_log, "log", "batch-000-000899")
    assert (found.runtime_s, found.expected_s) == (None, finished.expected_s)
    assert found.runtime.reasons == finished.runtime.reasons


def test_the_variable_shapes_are_the_more_variable_half():
    assert [variable_shapes(k) for k in (1, 2, 3, 8)] == [(), (1,), (2,), (4, 5, 6, 7)]


def test_a_run_or_job_that_is_not_there_is_one_clear_line(caused_log):
    with pytest.raises(NotFound, match="run 'r7': source 'log' has no run of this id; see the ids with whorl"):
        explain_run_of(caused_log, "log", "r7")
    with pytest.raises(NotFound, match="job 'x' of source 'log' has no finished run to explain"):
        explain_next_of(caused_log, "log", "x")
