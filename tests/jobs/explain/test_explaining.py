"""Reasons by a trained model: on a log in which big inputs and load make runs long, and nothing else does."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from tasks.errors import NotFound
from tasks.jobs.control.answering import ask_source
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.scenarios import parse_scenario
from tasks.jobs.explain.contributions import runtime_parts, shape_parts, variable_parts, variable_shapes
from tasks.jobs.explain.explaining import (
    USUAL_RUNS,
    explain_next,
    explain_next_of,
    explain_past,
    explain_run_of,
    load_explainer,
)
from tasks.jobs.explain.params import ExplainParams
from tasks.jobs.params import OutlookParams
from tasks.jobs.predict.predicting import job_outlook
from tasks.warehouse.connection import writing

PARAMS = ExplainParams()


@pytest.fixture
def explainer(caused_log):
    return load_explainer(caused_log, "log")


@pytest.fixture
def varied(trained_log):
    """Of a log whose jobs have two shapes, so that there are classifiers."""
    found = load_explainer(trained_log, "log")
    assert set(found.trained.classifiers) == {"ratio", "delta"}
    return found


def explain(explainer, run_id):
    runs = explainer.runs
    return explain_past(explainer, runs[runs["run_id"] == run_id], PARAMS)[0]


def last_of(explainer, cause):
    runs = explainer.runs
    return str(runs["run_id"][runs["recorded_cause"] == cause].iloc[-1])


def test_three_times_the_input_is_the_first_reason_of_a_run(explainer):
    found = explain(explainer, last_of(explainer, "big_input"))
    first = found.runtime.reasons[0]
    assert first.family == "input"
    assert first.feature == "input_bytes"
    assert 2 < first.factor < 3.5
    assert "times the usual 1 MB of the job: makes it" in first.text
    assert 2 < found.expected_s / found.usual_s < 3.5


def test_load_is_the_first_reason_of_a_run_under_load(explainer):
    found = explain(explainer, last_of(explainer, "load"))
    assert found.runtime.reasons[0].family == "load"
    assert found.runtime.reasons[0].factor == pytest.approx(2.0, rel=0.3)


def test_a_usual_run_has_no_reason_to_be_long(explainer):
    found = explain(explainer, last_of(explainer, "none"))
    assert [one.family for one in found.runtime.reasons if one.factor > 1.3] == []


def test_reasons_lead_from_the_usual_runs_to_the_mean_that_is_predicted(explainer):
    run = explainer.runs[explainer.runs["run_id"] == last_of(explainer, "big_input")]
    found, trained = explain_past(explainer, run, PARAMS)[0], explainer.trained
    told = found.runtime
    assert told.base + sum(one.contribution for one in told.reasons) + told.rest == pytest.approx(told.prediction)
    quantiles = trained.model.quantiles(trained.features(run, explainer.runs), trained.histories(run, explainer.runs))
    assert told.prediction == pytest.approx(quantiles.mean(), abs=0.02)


@pytest.mark.parametrize("is_relative", [False, True])
def test_what_features_add_is_the_mean_of_the_pool(explainer, is_relative):
    """Whatever the weights, with peers that a run does not have, and of trees of the runtime over the usual one."""
    trained, runs = explainer.trained, explainer.runs
    rows = runs.iloc[[0, 3, 300, 700, 899]]
    features, known = trained.features(rows, runs), trained.histories(rows, runs)
    weights = {"boosted": 0.5, "job, last 30": 0.3, "job": 0.2, "user and request": 0.0}
    for some in (weights, {"boosted": 1.0}, {"boosted": 0.0, "job": 1.0}, {"boosted": 0.1, "request": 0.9}):
        some = {part: (weight,) * 4 for part, weight in some.items()}
        model = replace(trained.model, weights=some, is_relative=is_relative, usual_log_s=3.0)
        parts = runtime_parts(model, features, known)
        if list(some) == ["boosted"]:
            assert parts.raw[:, 0] == pytest.approx(model.expected_log_s(features))
        means = model.quantiles(features, known).mean(axis=1)
        assert parts.raw[:, 0] == pytest.approx(means, abs=0.05)  # a hundred quantiles stand for the mixture


def test_later_runs_change_no_reason(explainer):
    """What is told of a run is what could have been told when it was submitted."""
    run_id = explainer.runs["run_id"].iloc[700]
    earlier = replace(explainer, runs=explainer.runs.iloc[:701])
    assert explain(explainer, run_id) == explain(earlier, run_id)


def test_runs_are_explained_together_as_each_by_itself(explainer):
    runs = explainer.runs
    rows = runs.iloc[[899, 8, 400]]
    assert explain_past(explainer, rows, PARAMS) == [explain(explainer, run_id) for run_id in rows["run_id"]]
    keys = sorted(runs["group_key"].unique())[:3]
    together = explain_next(explainer, keys, PARAMS)
    assert [one.group_key for one in together] == keys
    assert together == [explain_next(explainer, [key], PARAMS)[0] for key in keys]


def test_a_run_is_found_by_its_id_and_a_job_by_its_key(caused_log, explainer):
    run_id = last_of(explainer, "load")
    found = explain(explainer, run_id)
    assert explain_run_of(caused_log, "log", run_id, PARAMS) == found
    assert (
        explain_next_of(caused_log, "log", found.group_key, PARAMS)
        == explain_next(explainer, [found.group_key], PARAMS)[0]
    )


def test_the_next_run_is_explained_by_the_conditions_of_the_last_ones(explainer):
    key = explainer.runs["group_key"].iloc[0]
    [found] = explain_next(explainer, [key], PARAMS)
    assert (found.run_id, found.runtime_s, found.n_conditions, found.n_usual) == (None, None, 10, USUAL_RUNS)
    assert found.submitted_at > explainer.runs["ended_at"].max()
    assert found.usual_s == explainer.runs["runtime_s"][explainer.runs["group_key"] == key].median()


def test_predict_explain_and_what_if_say_one_median_of_the_next_run(caused_log, explainer):
    params = WhatIfParams()
    for key in sorted(explainer.runs["group_key"].unique())[:2]:
        [found] = explain_next(explainer, [key], PARAMS)
        told = job_outlook(caused_log, "log", key, OutlookParams())
        [median] = [limit.predicted_s for limit in told.limits if limit.level == 0.5]
        asked = ask_source(caused_log, "log", job=key)
        what_if = asked.answer(parse_scenario(sets=["input=x2"]), params)
        assert found.expected_s == median == what_if.outcome.changes.loc["median_s", "before"]
        assert found.usual_s == told.usual_s


def test_the_first_run_of_a_job_is_compared_with_all_runs(explainer):
    found = explain(explainer, explainer.runs["run_id"].iloc[0])
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


def test_without_evidence_of_earlier_runs_the_trees_alone_are_taken_apart(varied):
    trained = varied.trained
    features = trained.features(varied.runs.tail(50), varied.runs)
    for classifier in trained.classifiers.values():
        alone = replace(classifier, evidence=(), evidence_powers=())
        assert softmax(shape_parts(alone, features).raw, axis=1) == pytest.approx(alone.predict_proba(features))


def test_evidence_worked_out_by_hand(varied):
    """Trees to the power 0.5, all earlier runs to the power 2: 2 log(2 e) from evidence e of two shapes."""
    trained = varied.trained
    classifier = replace(trained.classifiers["ratio"], evidence=(("one", "two"),), evidence_powers=(0.5, 2.0))
    features = trained.features(varied.runs.tail(3), varied.runs).assign(one=[0.5, 0.9, 0.0], two=[0.5, 0.1, 1.0])
    parts = shape_parts(classifier, features)
    one = parts.to_score(0)[:, parts.features.index("one")]
    assert one == pytest.approx([0.0, 2 * np.log(1.8), 2 * np.log(2e-4)])  # never less than 1e-4
    assert parts.to_score(1)[:, parts.features.index("one")].tolist() == [0.0, 0.0, 0.0]
    assert softmax(parts.raw, axis=1) == pytest.approx(classifier.predict_proba(features), abs=1e-9)


def test_a_job_that_varied_has_high_odds_of_a_variable_shape_for_that_reason(varied):
    runs = varied.runs
    found = {n: explain(varied, runs["run_id"].iloc[-12 + n]) for n in (0, 1)}
    assert found[1].chance > 0.5 > found[0].chance
    assert found[1].variation.scale == "odds"
    assert found[1].variation.reasons[0].family == "history"
    assert "the odds of a variable runtime by" in found[1].variation.reasons[0].text


def test_runs_that_go_on_or_failed_are_explained_too(caused_log):
    """What was known at submission is all that is asked of a run."""
    finished = explain_run_of(caused_log, "log", "batch-000-000899", PARAMS)
    with writing(caused_log) as connection:
        connection.execute("UPDATE jobs.runs SET status = 'failed' WHERE run_id = 'batch-000-000899'")
    assert explain_run_of(caused_log, "log", "batch-000-000899", PARAMS).runtime == finished.runtime
    with writing(caused_log) as connection:
        connection.execute(
            """UPDATE jobs.runs SET status = 'running', runtime_s = NULL, ended_at = NULL
            WHERE run_id = 'batch-000-000899'"""
        )
    found = explain_run_of(caused_log, "log", "batch-000-000899", PARAMS)
    assert (found.runtime_s, found.expected_s) == (None, finished.expected_s)
    assert found.runtime.reasons == finished.runtime.reasons


def test_the_variable_shapes_are_the_more_variable_half():
    assert [variable_shapes(k) for k in (1, 2, 3, 8)] == [(), (1,), (2,), (4, 5, 6, 7)]


def test_a_run_or_job_that_is_not_there_is_one_clear_line(caused_log):
    with pytest.raises(NotFound, match="run 'r7': source 'log' has no run of this id; see the ids with whorl"):
        explain_run_of(caused_log, "log", "r7", PARAMS)
    with pytest.raises(NotFound, match="job 'x' of source 'log' has no finished run to explain"):
        explain_next_of(caused_log, "log", "x", PARAMS)


def test_a_source_without_a_model_says_how_to_make_one(job_log):
    warehouse = job_log([{"runtime_s": 1.0}])
    with pytest.raises(NotFound, match="source 'log' has no trained model yet; make one with whorl jobs train"):
        explain_run_of(warehouse, "log", "batch-000-000000", PARAMS)
