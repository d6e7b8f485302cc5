"""What is told of a whole source: which families count, that reasons name recorded causes, what is stored; the insights
of the paper and rank correlations, worked out by hand and where the truth is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tasks.errors import BadInput
from tasks.jobs import steps
from tasks.jobs.explain.contributions import Contributions, against_usual, by_family, runtime_parts
from tasks.jobs.explain.reasons import USUAL_RUNS, load_explainer, longest_runs, riskiest_jobs
from tasks.jobs.explain.whole_source import (
    CLAIMS,
    describe_held_out,
    explain_source,
    family_table,
    judge_history,
    judge_insights,
    rank_correlation,
    read_source,
)
from tasks.jobs.params import ExplainParams
from tasks.warehouse.connection import fetch

PARAMS = ExplainParams()
TABLES = ("reasons", "cause_families", "insights", "explanations")


def held_out_of(explainer):
    return describe_held_out(explainer.trained, explainer.runs)


def test_only_runs_that_the_model_did_not_learn_from_are_checked(explainer):
    found = held_out_of(explainer)
    test = set(found.runs["run_id"].iloc[found.test])
    assert test == set(explainer.runs["run_id"].iloc[720:])  # the last fifth
    assert not test & set(explainer.trained.seen["run_id"])


def test_the_usual_runs_are_those_of_the_job_that_had_ended_before(explainer, monkeypatch):
    monkeypatch.setattr("tasks.jobs.explain.whole_source.MAX_RUNS", 40)
    found = held_out_of(explainer)
    assert len(found.test) == 40
    for i in (0, 17, 39):
        row = found.runs.iloc[found.test[i]]
        usual = found.runs.iloc[found.usual[found.first[i] : found.first[i] + found.n_usual[i]]]
        job = explainer.runs[explainer.runs["group_key"] == row["group_key"]]
        expected = job[job["ended_at"] < row["submitted_at"]].sort_values("ended_at").tail(USUAL_RUNS)
        assert sorted(usual["run_id"]) == sorted(expected["run_id"])


def test_a_model_that_has_seen_all_runs_can_be_checked_on_none(explainer):
    seen = explainer.runs[["run_id"]].assign(residual=0.0)
    trained = replace(explainer.trained, seen=seen)
    with pytest.raises(BadInput, match="no run of the last part of the log that the model did not learn from"):
        describe_held_out(trained, explainer.runs)


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


def correlate(pairs, groups):
    return rank_correlation(pairs, groups, np.random.default_rng(1))


def test_the_correlation_is_that_of_the_ranks():
    rng = np.random.default_rng(0)
    x = rng.integers(5, size=200).astype(float)  # with ties
    y = x + rng.normal(0, 2, 200)
    found = correlate([(x, np.exp(y), 1.0)], np.arange(200) // 10)
    assert found.value == pytest.approx(spearmanr(x, y).statistic)
    assert found.low < found.value < found.high
    assert (found.n_runs, found.n_groups) == (200, 20)


def test_several_pairs_count_by_their_weights_and_constant_ones_not_at_all():
    x = np.arange(40.0)
    pairs = [(x, x, 3.0), (x, -x, 1.0), (x, np.zeros(40), 50.0), (np.ones(40), x, 50.0), (x, x, 0.0)]
    assert correlate(pairs, np.arange(40) // 4).value == pytest.approx((3 - 1) / 4)


def test_unknown_values_are_left_out():
    x = np.array([1.0, 2.0, 3.0, np.nan, 5.0])
    y = np.array([2.0, np.nan, 3.0, 0.0, 9.0])
    found = correlate([(x, y, 1.0)], np.arange(5))
    assert found.value == pytest.approx(1.0)
    assert (found.n_runs, found.n_groups) == (3, 3)


def test_nothing_to_correlate_and_one_group_give_a_reason():
    assert correlate([], []).reason == "nothing that varies and is known"
    one = correlate([(np.arange(5.0), np.arange(5.0), 1.0)], ["a"] * 5)
    assert (one.value, one.low, one.reason) == (pytest.approx(1.0), None, "one group: nothing to draw from")


def known(n_groups=40, n_runs=20, seed=2):
    """Contributions that follow the inputs, go against the load and have nothing to do with the queue or WINDOW."""
    rng = np.random.default_rng(seed)
    n = n_groups * n_runs
    names = ("input_bytes", "load_mean", "sku_load_mean_gen3", "op_WINDOW", "requested_tokens", "queue_length")
    names = (*names, "vertices_gen3_mean", "vertices_gen5_mean", "op_STREAMING_WINDOW")
    frame = pd.DataFrame(rng.normal(size=(n, len(names))), columns=list(names))
    slopes = {"input_bytes": 1.0, "load_mean": -1.0, "sku_load_mean_gen3": -0.5, "vertices_gen5_mean": -1.0}
    values = np.stack([slopes.get(name, 0.0) * frame[name] for name in names], axis=1)
    values[:, names.index("op_WINDOW")] = rng.normal(size=n)
    values[:, names.index("op_STREAMING_WINDOW")] = rng.normal(size=n)
    return Contributions(values[:, :, None], np.zeros((n, 1)), names), frame, np.arange(n) // n_runs, rng


def judged(variation=None, n_groups=None, **columns):
    parts, frame, groups, rng = known()
    groups, frame = groups if n_groups is None else np.arange(len(frame)) % n_groups, frame.assign(**columns)
    seen = np.zeros(len(frame)) if variation is None else variation
    return {one["insight"]: one for one in judge_insights(parts, frame, groups, rng, variation=seen)}


def test_claims_are_told_apart_where_the_truth_is_known():
    found = judged()
    assert {name: one["verdict"] for name, one in found.items()} == {
        "inputs": "holds", "tokens": "cannot be told", "index_lookup": "cannot be told", "window": "cannot be told",
        "range": "cannot be told", "load": "does not hold", "load_deviation": "cannot be told",
        "spare_tokens": "cannot be told", "newer_skus": "holds",
    }  # fmt: skip
    assert found["load"]["rho"] == pytest.approx(-1.0)


def test_what_cannot_be_told_says_why():
    found = judged()
    assert found["tokens"]["reason"] == "the model uses no such feature, or it is the same in all runs"
    assert found["window"]["reason"] == "the interval holds 0"
    assert found["range"]["reason"] == "the log has no such feature"
    assert judged(n_groups=5)["inputs"]["reason"] == "5 groups; an interval needs 10"


def test_operators_are_found_by_the_words_in_their_names():
    patterns = {name: pattern for name, _, pattern, _ in CLAIMS}
    matches = pd.Series(["op_INDEX_SCAN", "op_INDEX_LOOKUP", "op_IndexLookup", "op_RANGE", "op_ARRANGE", "op_SEQ_SCAN"])
    for name, expected in (("index_lookup", matches[:3]), ("range", matches[3:4])):
        assert matches[matches.str.fullmatch(patterns[name], case=False)].tolist() == expected.tolist()


def test_the_variation_that_was_seen_stands_beside_the_model():
    _, frame, _, _ = known()
    found = judged(variation=-frame["input_bytes"].to_numpy())
    assert found["inputs"]["rho"] == pytest.approx(1.0)
    assert found["inputs"]["measured_rho"] == pytest.approx(-1.0)
    assert (found["inputs"]["verdict"], found["inputs"]["measured_verdict"]) == ("holds", "does not hold")
    assert judged()["inputs"]["measured_rho"] is None


def test_more_history_is_told_to_help_where_it_does():
    rng = np.random.default_rng(5)
    n_before, groups = rng.integers(1, 60, 2000), np.arange(2000) // 40
    is_right = rng.uniform(size=2000) < 0.4 + n_before / 120
    assert judge_history(n_before, is_right, groups, rng)["verdict"] == "holds"
    assert judge_history(n_before, ~is_right, groups, rng)["verdict"] == "does not hold"
    always = judge_history(n_before, np.ones(2000), groups, rng)
    assert (always["verdict"], always["reason"]) == ("cannot be told", "nothing that varies and is known")


def test_what_the_model_does_without_is_still_measured():
    load_sd = np.abs(known()[1]["input_bytes"].to_numpy())
    found = judged(variation=load_sd, load_sd=load_sd)["load_deviation"]
    assert (found["verdict"], found["measured_verdict"]) == ("cannot be told", "holds")
    assert found["reason"] == "no such feature helped to tell shapes apart, so the model does without"
