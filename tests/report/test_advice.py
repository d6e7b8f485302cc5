"""What pages of advice say: the search, alike machines, estimates and the check of choices, with values by hand."""

import numpy as np
import pandas as pd
import pytest

from tasks.advice.estimate import Estimate, EstimateSpread
from tasks.advice.groups import Doubt, Grouping, MachineGroup
from tasks.advice.search import Proposal, SearchProposal, TriedRun
from tasks.advice.story import OURS, STAY, LateCheck, Story
from tasks.advice.tarema import Assignment
from tasks.advice.transfer import TransferredRuns, Widening
from tasks.report.advice import (
    estimate_figures,
    estimate_result,
    evaluation_result,
    groups_result,
    next_run_result,
    story_checks,
    story_result,
    transfer_figures,
    transfer_result,
)

TRIED = (TriedRun("small", 4, 600.0, "completed", 0.5, True), TriedRun("small", 2, 5400.0, "failed", 2.25, False))
PROPOSAL = Proposal(
    candidate=3, cost=0.4, cost_low=0.3, cost_high=0.55, runtime_s=500.0, value_share=0.2, chance_completed=0.9,
    chance_in_time=1.0, learned_share=0.1, is_worthwhile=True,
)  # fmt: skip


def next_run(**more):
    told = {"job": "sort", "answer": "Run sort on 6 large.", "certainty": "90 % sure.", "reasons": ("cheapest",)}
    told |= {"is_finished": False, "configuration": "large x6", "machine_type": "large", "nodes": 6}
    told |= {"proposal": PROPOSAL, "best": TRIED[0], "tried": TRIED, "n_candidates": 18, "n_promising": 3, "need": None}
    return SearchProposal(**told | {"priced_on": "2026-01-05"} | more)


def drawn(result, name):
    [one] = [figure for figure in result.figures if figure.name == name]
    return next(rows for rows in one.chart()["datasets"].values())


def test_the_runs_so_far_stand_beside_the_proposal(rows_of):
    result = next_run_result(next_run(), "whorl advice search")
    assert result.made_of == "2 runs of sort, 18 configurations, prices of 2026-01-05"
    assert [row["runtime_s"] for row in rows_of(result, "Runs so far")] == ["10 min", "90 min"]
    one = next_run_result(next_run(tried=TRIED[:1], priced_on=""), "")
    assert one.made_of == "1 runs of sort, 18 configurations, prices without a date"


def grouping(doubts=()):
    best = MachineGroup("A", ("m1", "m2"), {"cpu": 1.5}, {"cpu": 2})
    return Grouping((best, MachineGroup("B", ("m3",), {"cpu": 0.75}, {"cpu": 0})), doubts, 0.01, 0.4, {"cpu": 0.05},
                    {"cpu": 0.1}, False)  # fmt: skip


def test_machines_stand_in_their_groups_beside_the_original_and_doubts_only_where_there_are_some(rows_of):
    tasks = [Assignment("align", {"cpu": 2}, "A", 0)]
    result = groups_result(grouping(), tasks, {"m1": 1, "m3": 3}, "fleet", "")
    assert rows_of(result, "Groups")[0] == {"name": "A", "n": "2", "cpu": "1.5", "cpu level": "high"}
    assert rows_of(result, "Groups")[1]["cpu level"] == "low"
    assert [list(row.values()) for row in rows_of(result, "Machines")] == [
        ["m1", "A", "1"], ["m2", "A", "–"], ["m3", "B", "3"],
    ]  # fmt: skip
    assert rows_of(result, "Tasks")[0]["group"] == "A"
    assert "In doubt" not in [one.title for one in result.tables]
    unsure = groups_result(grouping((Doubt("m2", "A", "B", 0.6),)), [], {}, "fleet", "")
    assert rows_of(unsure, "In doubt") == [{"machine": "m2", "group": "A", "other": "B", "probability": "60.0 %"}]


def test_an_estimate_names_each_workflow_and_its_longest_tasks_first(rows_of):
    tasks = pd.DataFrame(
        {"workflow": "rna", "task": ["trim", "align"], "size": 1.0, "runtime_s": [30.0, 300.0], "low_s": [20.0, 240.0],
         "high_s": [45.0, 420.0], "shape": "linear", "n_runs": 3, "n_target_runs": 0, "spread": 0.1}
    )  # fmt: skip
    workflows = pd.DataFrame({"workflow": ["rna"], "runtime_s": [330.0], "low_s": 280.0, "high_s": 440.0, "n_tasks": 2})
    found = Estimate("local", "large", 0.5, "cpu", EstimateSpread(0.9, 1.5, 1.2, "two tasks"), tasks, workflows)
    result = estimate_result(found, "")
    assert result.answer == ("rna takes 5.5 min on large (4.7 min to 7.3 min), its 2 tasks one after the other.")
    assert result.certainty == "90.0 % intervals, from two tasks."
    assert result.reasons[0].startswith("One thread of local does 0.500 of the work of one of large")
    assert [row["task"] for row in rows_of(result, "Tasks")] == ["align", "trim"]
    assert "spread" not in estimate_figures(found)["tasks"][0]


def test_a_deadline_has_its_chance_in_the_answer_the_chart_and_the_figures():
    stages = pd.DataFrame({"stage": ["map"], "median_s": 9.0, "low_s": 8.0, "high_s": 12.0, "n_runs": 5})
    widening = Widening(median=0.0, **{name: 0.0 for name in Widening.__dataclass_fields__ if name != "median"})
    found = TransferredRuns("etl", "a", "b", np.array([10.0, 20.0, 30.0, 40.0]), 10.0, 40.0, widening, stages, "4 runs")
    result = transfer_result(found, 0.9, 25.0, "")
    assert (
        result.answer == "etl takes 25 s on b in half of its runs, and longer than 25 s in 50.0 % (50.0 % to 50.0 %)."
    )
    assert "longer" not in transfer_result(found, 0.9, None, "").answer
    assert [row["share"] for row in drawn(result, "runtimes")] == [0.25, 0.5, 0.75, 1.0]
    told = transfer_figures(found, 0.9, 25.0)
    assert (told["median_s"], told["late_ratio"], told["quantiles_s"]["0.5"]) == (25.0, 0.5, 25.0)
    assert "deadline_s" not in transfer_figures(found, 0.9, None)


CHECK = LateCheck(said=0.02, said_low=0.0, said_high=0.05, late=0.03, late_low=0.01, late_high=0.06, runs=200, jobs=20)
RULES = pd.DataFrame({"rule": [OURS, STAY], "regret": [0.05, 0.2], "misses": [0.1, 0.3]})
TYPES = pd.DataFrame({"machine_type": ["large"], "verdict": "safe", "late": 0.01, "p95_s": 12.0})


def test_a_check_of_choices_counts_late_jobs_and_says_whether_what_was_said_holds(rows_of):
    parts = {name: pd.DataFrame({"job": ["etl"]}) for name in ("jobs", "runtimes", "calibration")}
    told = Story("Take large.", "sure", "it is fast", "one run", TYPES, rules=RULES, chosen=CHECK, everywhere=CHECK,
                 **parts)  # fmt: skip
    first, chosen, _ = story_checks(told)
    assert first.startswith("The chosen types cost 5.0 % more") and "and 2 of 20 jobs" in first and "(6 if" in first
    assert chosen.endswith(", as predicted: 2.0 %, 0.0 % to 5.0 %.")
    assert story_result(told, "log", "").answer == first
    one = story_result(told, "log", "", job="etl")
    assert (one.title, one.answer) == ("A machine type for etl", "Take large.")
    assert rows_of(one, "Types")[0]["late"] == "1.0 %"


@pytest.mark.parametrize(("mean", "answer"), [(1.25, "25.0 % above the optimum"), (None, "nothing valid in some")])
def test_an_evaluation_says_what_six_runs_find_and_what_a_rival_costs(rows_of, mean, answer):
    ours = {"n": 40, "mean.1": 2.0, "median.1": 1.5, "mean.6": mean, "median.6": 1.1, "hit.6": 0.5, "valid.6": 1.0}
    rival = {"n": 40, "mean.6": 1.5, "median.6": 1.4, "minus_ours.6": 0.125, "minus_ours.6.low": 0.05}
    figures = {"jobs": 4, "n": 72, "seed": 1}
    figures |= {f"completed.learned.{key}": value for key, value in ours.items()}
    figures |= {f"completed.cherrypick.{key}": value for key, value in rival.items()}
    result = evaluation_result(figures | {"completed.cherrypick.minus_ours.6.high": 0.2}, "runs", "")
    assert answer in result.answer and "50.0 % of the searches" in result.answer
    assert result.certainty == "CherryPick costs +5.0 % to +20.0 % against that (90 % interval over jobs)."
    rows = rows_of(result, "Among configurations that completed")
    assert {row["after.1"] for row in rows} >= {"2.000, 1.500"}
    assert "+0.125 (+0.050 to +0.200)" in {row["against"] for row in rows}
