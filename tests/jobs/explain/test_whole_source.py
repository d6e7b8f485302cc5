"""What is told of a whole source: which families count, whether reasons name recorded causes, what is stored."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs import steps
from tasks.jobs.explain.contributions import FAMILIES, Contributions
from tasks.jobs.explain.reasons import load_explainer, longest_runs, riskiest_jobs
from tasks.jobs.explain.whole_source import (
    RECORDED,
    check_causes,
    describe_held_out,
    explain_source,
    family_table,
    read_source,
    reciprocal_ranks,
)
from tasks.jobs.params import ExplainParams
from tasks.jobs.record.rows import Cause
from tasks.warehouse.connection import fetch

PARAMS = ExplainParams()
TABLES = ("reasons", "cause_families", "cause_checks", "insights", "explanations")


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
    assert set(found.runs["run_id"].iloc[found.training]) == set(explainer.trained.seen["run_id"])


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
    check = explain_source(explainer).check.set_index(["order_name", "cause"])
    assert check.loc[("reasons", "all"), "mrr"] > 0.9
    assert check.loc[("reasons", "even"), "mrr"] > 0.9
    assert check.loc[("reasons", "all"), "mrr"] > check.loc[("random", "all"), "mrr"] + 0.3
    assert check.loc[("importance", "all"), "low"] > 0  # no one order can name both causes first
    assert check.loc[("frequency", "all"), "low"] > 0


def test_the_order_by_frequency_is_that_of_the_training_runs(explainer):
    """In the held-out runs big inputs are made the rarer cause; in training they are the more frequent one."""
    runs = explainer.runs
    cause = runs["recorded_cause"].copy()
    is_test = np.arange(len(runs)) >= 720
    cause[(cause == "load").to_numpy() & ~is_test] = "none"
    check = explain_source(replace(explainer, runs=runs.assign(recorded_cause=cause))).check
    by_frequency, n_runs = check.set_index(["order_name", "cause"]).loc[("frequency", "all"), ["mrr", "n"]]
    n_input = (cause[is_test] == "big_input").sum()
    assert by_frequency < 1  # the load comes after input, with all families that were never recorded
    assert by_frequency > n_input / n_runs


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


def test_a_log_without_recorded_causes_has_no_check(trained_log):
    found = explain_source(load_explainer(trained_log, "log"))
    assert found.check.empty
    assert not found.families.empty
    assert steps.explain_source(trained_log, "log", PARAMS) == found.model_id
    assert fetch(trained_log, "SELECT * FROM jobs.cause_checks").empty


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
    assert found.checks["n"].min() >= 1
    assert read_source(caused_log, "log", "another") is None
    assert read_source(caused_log, "other", model_id) is None


def test_every_cause_that_a_recording_knows_is_placed():
    assert set(RECORDED) == set(get_args(Cause)) - {"none", "not_measured"}
    assert {family for family in RECORDED.values() if family} <= set(FAMILIES)


NAMES = ("input_bytes", "load_mean", "requested_tokens")


def one_score(values, names=NAMES):
    values = np.asarray(values, dtype=float)
    return Contributions(values[:, :, None], np.zeros((len(values), 1)), names)


def check(values, recorded, groups=None, *, training=None, earlier=None):
    """The mrr of each order and cause, the table itself under `table`."""
    groups = groups if groups is not None else [f"job {i}" for i in range(len(recorded))]
    parts = one_score(values)
    found = check_causes(
        parts, recorded, groups, np.random.default_rng(0), training or parts, recorded if earlier is None else earlier
    )
    if found.empty:
        return found
    table = found.set_index(["order_name", "cause"])
    return {"table": table, **table["mrr"].to_dict()}


def test_ranks_count_from_the_largest_and_ties_share_them():
    scores = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    found = reciprocal_ranks(scores, np.array([2, 0, 1]))
    assert found.tolist() == pytest.approx([1 / 2, (1 / 2 + 1 / 3) / 2, (1 + 1 / 2 + 1 / 3) / 3])


def test_four_runs_worked_out_by_hand():
    """Ranks 1, 2 and 3. Random: (1 + 1/2 + 1/3) / 3. Mean absolute contributions 1.25, 1, 0.75: input, load, tokens."""
    values = [[2.0, 0.0, -1.0], [1.0, 0.5, 0.0], [1.0, 2.0, 0.0], [-1.0, 1.5, -2.0]]
    found = check(values, ["big_input", "load", "few_tokens", "none"])
    assert set(found["table"]["n"]) == {3, 1}
    assert found["reasons", "all"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert found["random", "all"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert found["importance", "all"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    for cause, expected in (("big_input", 1.0), ("few_tokens", 1 / 3), ("load", 0.5)):
        assert found["reasons", cause] == found["importance", cause] == pytest.approx(expected)


def test_what_shortens_a_run_is_no_reason_for_its_length():
    found = check([[-9.0, 0.1, 0.2]], ["big_input"])
    assert found["reasons", "all"] == pytest.approx(1 / 3)


def test_causes_that_no_feature_shows_are_left_out():
    values = np.tile([1.0, 2.0, 3.0], (6, 1))
    found = check(values, ["lock", "cold_cache", "cold_cache", "spill", "few_tokens", None])
    assert set(found["table"].index.get_level_values("cause")) == {
        "all",
        "even",
        "few_tokens",
    }  # no feature of memory here
    assert found["table"].loc[("reasons", "all"), ["n", "mrr"]].tolist() == [1, 1.0]


def test_reasons_that_name_the_cause_beat_every_order_that_looks_at_no_run():
    rng = np.random.default_rng(4)
    cause = rng.integers(3, size=300)
    values = rng.normal(size=(300, 3)) * 0.1
    values[np.arange(300), cause] += 1.0
    recorded = np.array(["big_input", "load", "few_tokens"])[cause].tolist()
    found = check(values, recorded, rng.integers(40, size=300))
    assert found["reasons", "all"] == found["reasons", "even"] == pytest.approx(1.0)
    assert found["random", "all"] < 1
    assert (found["table"].loc[[("importance", "all"), ("frequency", "all")], "low"] > 0).all()
    assert found["frequency", "even"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_a_rare_cause_counts_as_much_as_a_frequent_one_in_the_even_mean():
    values = np.tile([0.0, 2.0, 1.0], (10, 1))
    found = check(values, ["load"] * 9 + ["big_input"])
    assert found["reasons", "all"] == pytest.approx((9 + 1 / 3) / 10)
    assert found["reasons", "even"] == pytest.approx((1 + 1 / 3) / 2)


def test_without_a_recorded_cause_there_is_no_figure():
    assert check([[1.0, 2.0, 3.0]] * 2, ["none", None]).empty
