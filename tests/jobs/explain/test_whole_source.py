"""What is told of a whole source: which families count, that reasons name recorded causes, what is stored."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs import steps
from tasks.jobs.explain.contributions import Contributions, against_usual, by_family, runtime_parts
from tasks.jobs.explain.reasons import load_explainer, longest_runs, riskiest_jobs
from tasks.jobs.explain.whole_source import describe_held_out, explain_source, family_table, read_source
from tasks.jobs.params import ExplainParams
from tasks.warehouse.connection import fetch

PARAMS = ExplainParams()
TABLES = ("reasons", "cause_families", "insights", "explanations")


@pytest.fixture
def explainer(caused_log):
    return load_explainer(caused_log, "log")


def held_out_of(explainer, **changes):
    asked = {"max_runs": 4000, "usual_runs": 20, **changes}
    return describe_held_out(explainer.trained, explainer.runs, **asked)


def test_only_runs_that_the_model_did_not_learn_from_are_checked(explainer):
    found = held_out_of(explainer)
    test = set(found.runs["run_id"].iloc[found.test])
    assert test == set(explainer.runs["run_id"].iloc[720:])  # the last fifth
    assert not test & set(explainer.trained.seen["run_id"])


def test_the_usual_runs_are_those_of_the_job_that_had_ended_before(explainer):
    found = held_out_of(explainer, usual_runs=5, max_runs=40)
    assert len(found.test) == 40
    for i in (0, 17, 39):
        row = found.runs.iloc[found.test[i]]
        usual = found.runs.iloc[found.usual[found.first[i] : found.first[i] + found.n_usual[i]]]
        job = explainer.runs[explainer.runs["group_key"] == row["group_key"]]
        expected = job[job["ended_at"] < row["submitted_at"]].sort_values("ended_at").tail(5)
        assert sorted(usual["run_id"]) == sorted(expected["run_id"])


def test_a_model_that_has_seen_all_runs_can_be_checked_on_none(explainer):
    seen = explainer.runs[["run_id"]].assign(residual=0.0)
    trained = replace(explainer.trained, seen=seen)
    with pytest.raises(BadInput, match="no run of the last part of the log that the model did not learn from"):
        describe_held_out(trained, explainer.runs, max_runs=100, usual_runs=5)


def test_reasons_name_the_recorded_causes(explainer):
    found = held_out_of(explainer)
    known = runtime_parts(explainer.trained.model, found.features, found.known)
    parts = against_usual(known.rows(found.test), known.rows(found.usual), found.first, found.n_usual)
    sums, families = by_family(parts)
    first = np.array(families)[sums.argmax(axis=1)]
    recorded = found.runs["recorded_cause"].iloc[found.test].map({"big_input": "input", "load": "load"}).to_numpy()
    for cause in ("input", "load"):
        assert (first == cause)[recorded == cause].mean() > 0.8, cause


def test_input_and_load_are_what_makes_runs_long(explainer):
    table = explain_source(explainer).families
    of_runtime = table[table["question"] == "runtime"].set_index("family")
    assert set(of_runtime.index[:2]) == {"input", "load"}
    assert of_runtime["share"].sum() == pytest.approx(1.0)
    assert of_runtime["first_share"].sum() <= 1
    assert of_runtime["first_share"][["input", "load"]].sum() > 0.9
    assert (of_runtime["typical_factor"] >= 1).all()


def test_shares_of_families_worked_out_by_hand():
    """Mean sizes: input 2, load 1. Of three long runs input is the first reason of one, load of one, none of one."""
    values = np.array([[3.0, 1.0], [-1.0, 1.0], [2.0, -1.0], [-2.0, -1.0]])
    parts = Contributions(values[:, :, None], np.zeros((4, 1)), ("input_bytes", "load_mean"))
    runs = pd.DataFrame({"runtime_s": [9.0, 4.0, 1.0, 8.0], "median_s": [2.0, 2.0, 2.0, 2.0]})
    found = family_table({"runtime": parts, "ratio": parts}, runs).set_index(["question", "family"])
    assert found["share"].tolist() == pytest.approx([2 / 3, 1 / 3] * 2)
    assert found["typical_factor"].tolist() == pytest.approx([np.exp(2), np.e] * 2)
    assert found.loc["runtime", "first_share"].tolist() == pytest.approx([1 / 3, 1 / 3])
    assert found.loc["ratio", "first_share"].isna().all()
    assert found["n_long"].tolist() == [3] * 4


def test_the_longest_runs_are_those_that_took_the_most_times_their_usual_time(explainer):
    found = longest_runs(explainer, ExplainParams(n_longest=5))
    runs = explainer.runs.set_index("run_id").loc[found]
    assert (runs["recorded_cause"] == "big_input").all()
    assert longest_runs(explainer, ExplainParams(n_longest=0)) == []


def test_only_runs_of_the_last_days_are_explained(explainer):
    recent = longest_runs(explainer, ExplainParams(look_back_days=1 / 24, n_longest=1000))
    ended_at = explainer.runs.set_index("run_id").loc[recent, "ended_at"]
    assert ended_at.min() > explainer.runs["ended_at"].max() - pd.Timedelta(hours=1)


def test_the_riskiest_jobs_are_the_varied_ones(trained_log):
    """In this log the odd jobs vary twelve times as much as the even ones."""
    found = riskiest_jobs(load_explainer(trained_log, "log"), ExplainParams(n_riskiest=4))
    assert all(int(key[3:5]) % 2 == 1 for key in found)


@pytest.mark.slow
def test_writing_twice_changes_nothing(caused_log):
    states = []
    for _ in range(2):
        model_id = steps.explain_source(caused_log, "log", PARAMS)
        n_rows = steps.explain_runs(caused_log, "log", PARAMS, model_id)
        found = fetch(caused_log, "SELECT run_id, group_key, question, rank FROM jobs.reasons")
        assert len(found) == n_rows == len(found.drop_duplicates())
        states.append(hash_of(caused_log))
    assert states[0] == states[1]


def hash_of(warehouse):
    frames = {name: fetch(warehouse, f"SELECT * FROM jobs.{name} ORDER BY ALL") for name in TABLES}
    assert all(len(frame) for frame in frames.values())
    return {name: frame.to_json(double_precision=10) for name, frame in frames.items()}


def test_what_was_stored_is_read_while_model_and_files_are_the_same(caused_log):
    model_id = steps.explain_source(caused_log, "log", PARAMS)
    found = read_source(caused_log, "log", model_id)
    assert found.insights["insight"].tolist()[:3] == ["inputs", "tokens", "index_lookup"]
    assert set(found.families["question"]) >= {"runtime"}
    assert read_source(caused_log, "log", "another") is None
    assert read_source(caused_log, "other", model_id) is None
