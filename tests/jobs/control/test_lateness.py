"""Next runs: which are likely late, what that costs, why, what would help: by hand, and as explain and whatif say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.jobs import steps
from tasks.jobs.control.answering import ask_source
from tasks.jobs.control.lateness import NOT_KNOWN, next_words, reason_of, with_answers, with_costs, without_reason
from tasks.jobs.control.scenarios import named_scenario
from tasks.jobs.explain.reasons import Explanation, FamilyReason, explain_next_of
from tasks.jobs.params import WhatIfParams
from tasks.jobs.predict.predicting import read_predictions
from tasks.warehouse.connection import fetch


def next_runs(**more):
    row = {
        "group_key": "etl", "model_id": "m", "predicted_at": pd.Timestamp("2026-01-10"), "usual_s": 100.0,
        "p95_s": 300.0, "exceeds_2x_share": 0.12, "expected_excess_s": 20.0,
    }  # fmt: skip
    return pd.DataFrame([row | more])


@pytest.mark.parametrize(("last_day", "is_idle"), [(6, True), (9, False)])
def test_a_job_that_stood_idle_for_thrice_its_longest_gap_has_no_next_run(job_log, last_day, is_idle):
    days = range(last_day - 3, last_day + 1)
    rows = [{"run_id": f"{day}", "group_key": "etl", "submitted_at": pd.Timestamp(2026, 1, day)} for day in days]
    found = with_costs(job_log([{**row, "runtime_s": 100.0} for row in rows]), "log", next_runs()).iloc[0]
    assert bool(found["is_idle"]) == is_idle
    assert found["cost_s_per_day"] == pytest.approx(20)


@pytest.mark.parametrize(("others_last_s", "cost_s_per_day"), [(9 * 86400, 40), (43200, 80)])
def test_three_runs_of_a_minute_are_no_thousands_a_day(job_log, others_last_s, cost_s_per_day):
    first = pd.Timestamp(2026, 1, 1)
    begun = [("etl", 0), ("etl", 30), ("etl", 60), ("other", 0), ("other", others_last_s)]
    rows = [
        {"run_id": f"{key} {s}", "group_key": key, "submitted_at": first + pd.Timedelta(s, "s"), "runtime_s": 100.0}
        for key, s in begun
    ]
    found = with_costs(job_log(rows), "log", next_runs(expected_excess_s=20.0)).iloc[0]
    assert found["cost_s_per_day"] == pytest.approx(cost_s_per_day)  # two more runs in a day, or in a log of half a day


def test_the_answer_has_the_reason_and_the_help_where_they_are_known():
    row = next_runs(cost_s_per_day=40.0, reason=None).iloc[0]
    chance = "etl: 12.0 % chance to take twice its usual 100 s; 95 % sure to end within 5 min; "
    cost = "expected beyond the usual: 20 s a run, 40 s a day"
    assert next_words(row) == chance + cost
    assert "limit" not in next_words({**row, "at_limit_share": 0.04}) + next_words({**row, "at_limit_share": np.nan})
    stopped = next_words({**row, "at_limit_share": 0.21})
    assert stopped == next_words(row).replace(": ", ": 21.0 % chance to be stopped at its time limit; ", 1)
    known = {"reason": "its input is twice as large", "would_help": "steadier load"}
    assert next_words({**row, **known}) == (
        f"{chance}{cost}; why: its input is twice as large; what would help: steadier load"
    )


@pytest.fixture(scope="module")
def loaded(tmp_path_factory, job_log_at, quick_training):
    """A warehouse with runs of four jobs, 1.5 to 4.5 times as long where the load is uneven; a model, predictions.

    Ids fall as time goes on: an order of ids is none of time."""
    rng, n = np.random.default_rng(4), 720
    number, load_sd = np.arange(n) % 4, rng.uniform(0.1, 0.5, n)
    rows = {
        "run_id": [f"r{n - at:04}" for at in range(n)], "group_key": [f"job-{one}" for one in number],
        "runtime_s": (10.0 + number) * np.exp(3 * load_sd + rng.normal(0, 0.05, n)), "load_sd": load_sd,
        "load_mean": rng.uniform(0.2, 0.8, n),
    }  # fmt: skip
    warehouse = job_log_at(tmp_path_factory.mktemp("loaded") / "home")(pd.DataFrame(rows))
    steps.train(warehouse, "log", quick_training, "first-run")
    steps.predict(warehouse, "log")
    return warehouse


@pytest.fixture(scope="module")
def answered(loaded):
    """The first three next runs with reason and help, and a fourth without."""
    return with_answers(loaded, "log", with_costs(loaded, "log", read_predictions(loaded, "log")), most=3)


def test_the_help_is_what_whatif_says_of_that_job_to_the_digit(loaded, answered):
    for row in answered.head(3).to_dict("records"):
        asked = ask_source(loaded, "log", job=row["group_key"])
        found = asked.answer(named_scenario("steady_load"), WhatIfParams()).outcome.changes.loc["p95_s"]
        assert row["help"] == "steady_load"  # nothing is known of machines and spare tokens
        assert (row["p95_s"], row["help_p95_s"], row["help_share"]) == tuple(found[["before", "after", "relative"]])
        assert row["help_share"] < -0.2
        assert f"what would help: {row['would_help']}" in row["answer"]
        assert row["would_help"].startswith("steadier load: 95 % under ")


def test_the_reason_is_the_first_of_explain_that_makes_it_longer_or_its_job_more_variable(loaded, answered):
    for row in answered.head(3).to_dict("records"):
        found = explain_next_of(loaded, "log", row["group_key"])
        assert row["reason"] == (reason_of(found) or without_reason(found))


def test_a_job_of_few_runs_that_others_outweigh_is_told_so(loaded):
    found = explain_next_of(loaded, "log", read_predictions(loaded, "log")["group_key"].iloc[0])
    few = replace(found, n_usual=4, n_longer=2, usual_s=3.5, expected_s=1000.0)
    assert without_reason(few).startswith("the 4 runs of the job count little")
    assert without_reason(replace(few, n_usual=0)).startswith("the one or two runs of the job count little")
    assert without_reason(replace(few, n_usual=0, usual_s=float("nan"))).startswith("no single cause")
    nothing = without_reason(replace(few, n_usual=20, n_longer=13))
    assert nothing.startswith("no single cause") and nothing == without_reason(replace(few, expected_s=4.0))


def test_a_job_whose_last_runs_took_longer_than_those_before_is_told_so(loaded):
    found = explain_next_of(loaded, "log", "job-0")
    runs = fetch(loaded, "SELECT runtime_s FROM jobs.runs WHERE group_key = 'job-0' ORDER BY submitted_at")["runtime_s"]
    last = runs.tail(found.n_usual)
    assert (found.last_s, found.n_longer) == (pytest.approx(last.median()), (last > found.usual_s).sum())
    changed = replace(found, n_longer=16, expected_s=2 * found.usual_s)
    assert without_reason(changed).startswith("its last 20 runs took ")
    for luck in ({"n_longer": 15}, {"expected_s": found.usual_s}):  # 15 of 20 are no surprise
        assert without_reason(replace(changed, **luck)).startswith("no single cause")


def test_rows_beyond_the_first_keep_their_place_and_have_chance_and_cost_alone(loaded, answered):
    assert answered["group_key"].tolist() == read_predictions(loaded, "log")["group_key"].tolist()
    last = answered.iloc[3]
    assert last[["reason", "help", "would_help"]].isna().all()
    assert "a day" in last["answer"] and "why" not in last["answer"]


def reasons_of(*said):
    """Reasons by family and contribution, called so."""
    made = tuple(FamilyReason(family, "f", 1.0, 1.0, "the job", one, {}, f"{family} {one}") for family, one in said)
    return Explanation("factor", 0.0, 0.0, made, 0.0)


def test_the_reason_is_a_cause_that_makes_it_longer_or_more_variable_before_what_earlier_runs_took(loaded):
    found = explain_next_of(loaded, "log", "job-0")
    runtime = reasons_of(("queue", -0.5), ("history", 0.9), ("load", 0.2))
    varies = reasons_of(("history", 2.0), ("tokens", 0.1))
    assert reason_of(replace(found, runtime=runtime, variation=varies)) == "load 0.2"
    runtime = reasons_of(("queue", -0.5), ("history", 0.9))
    assert reason_of(replace(found, runtime=runtime, variation=varies)) == "tokens 0.1"
    assert reason_of(replace(found, runtime=runtime, variation=None)) == "history 0.9"
    assert reason_of(replace(found, runtime=runtime, variation=varies, expected_s=3 * found.usual_s)) == "history 0.9"
    varies = reasons_of(("history", 2.0), ("tokens", -0.1))
    assert reason_of(replace(found, runtime=reasons_of(("queue", -0.5)), variation=varies)) is None


def test_a_log_that_tells_nothing_of_what_could_be_changed_is_told_so(trained_log):
    steps.predict(trained_log, "log")
    rows = with_answers(
        trained_log, "log", with_costs(trained_log, "log", read_predictions(trained_log, "log")), most=2
    )
    assert rows["would_help"].head(2).tolist() == [NOT_KNOWN] * 2
    assert rows["help"].isna().all()
