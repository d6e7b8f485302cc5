"""The check of choices with runs that were held back: worked out by hand on a few runs, and whole on made-up jobs."""

import numpy as np
import pandas as pd
import pytest

from tasks.advice.choice import BeliefParams, choose_type
from tasks.advice.story import (
    ORACLE,
    OURS,
    best_type,
    check_late,
    choose_all,
    compare,
    rule_choices,
    scores_of,
    story,
    story_of,
    truth_of,
)
from tasks.errors import BadInput

MACHINES = pd.DataFrame(
    [
        {"machine_type": "a", "vcpu": 1, "memory_gb": 2.0, "price_per_h": 3600.0},
        {"machine_type": "slow", "vcpu": 0.5, "memory_gb": 1.0, "price_per_h": 1200.0},
        {"machine_type": "large", "vcpu": 2, "memory_gb": 4.0, "price_per_h": 9000.0},
    ]
)
SPEED = {"a": 1.0, "slow": 0.5, "large": 2.0}
SCORES = pd.DataFrame(
    [
        {"machine_type": name, "aspect": aspect, "score": 100 * speed}
        for name, speed in SPEED.items()
        for aspect in ("cpu_one_thread", "cpu_all_threads", "disk")
    ]
)


def runs(job, machine_type, runtimes_s, status="completed"):
    return pd.DataFrame({"job": job, "machine_type": machine_type, "runtime_s": runtimes_s, "status": status})


def world(n_jobs=6, n=20, seed=1):
    """Jobs that are bound by the CPU alone: history on a, held-back runs on every type."""
    rng = np.random.default_rng(seed)
    told, held = [], []
    for number in range(n_jobs):
        told.append(runs(f"job{number}", "a", 10 * np.exp(0.1 * rng.standard_normal(n))))
        for name, speed in SPEED.items():
            held.append(runs(f"job{number}", name, 10 / speed * np.exp(0.1 * rng.standard_normal(10))))
    history = pd.concat(told, ignore_index=True)
    return history.assign(cpu_s=history["runtime_s"]), pd.concat(held, ignore_index=True)


MULTIPLES = {f"job{number}": multiple for number, multiple in enumerate([0.8, 1.4, 1.6, 2.8, 3.0, 4.0])}


def test_scores_are_medians_of_the_benchmarks():
    rows = [("cpu-sysbench", "events_per_second", value) for value in (10.0, 30.0, 20.0)]
    rows += [("disk-fio", "read_bw", 50e6), ("disk-fio", "write_bw", 1.0)]
    executions = pd.DataFrame(rows, columns=["benchmark", "metric", "value"]).assign(machine_type="a")
    scores = scores_of(executions).set_index("aspect")["score"]
    assert scores.to_dict() == {"cpu_all_threads": 20.0, "disk": 50.0}


def test_a_deadline_is_a_multiple_of_the_median_of_completed_runs():
    history = pd.concat([runs("j", "a", [1.0, 2.0, 6.0]), runs("j", "a", [100.0], "failed")])
    assert [choice.deadline_s for choice in choose_all(history, MACHINES, SCORES, {"j": 1.5})] == [3.0]


HELD = pd.concat(
    [
        runs("j", "a", [2.0, 4.0]),
        runs("j", "slow", [4.0, 20.0]),
        pd.concat([runs("j", "large", [1.0]), runs("j", "large", [0.5], "failed")]),
    ]
)


def test_the_truth_of_a_cell_is_worked_out_by_hand():
    truth = truth_of(HELD, MACHINES, {"j": 5.0})
    assert truth.loc["j"]["late"].to_dict() == {"a": 0, "slow": 0.5, "large": 0.5}
    assert truth.loc["j"]["cost"].to_dict() == {"a": 3.0, "slow": 4.0, "large": 0.75 * 2.5}
    assert truth.loc[("j", "large"), "median_s"] == 1.0
    assert best_type(truth, "j", 0.05) == "a"
    assert best_type(truth, "j", 0.5) == "large"
    none_meets = truth_of(HELD, MACHINES, {"j": 0.1})
    assert best_type(none_meets, "j", 0.05) == "large"  # the cheapest of those that are late least often


def test_rules_beside_each_other_are_worked_out_by_hand():
    truth = truth_of(HELD, MACHINES, {"j": 5.0})
    table = compare({"stay": {"j": "a"}, "cheap": {"j": "slow"}, "big": {"j": "large"}}, truth, 0.05).set_index("rule")
    assert table["regret"].to_dict() == pytest.approx({"stay": 0, "cheap": 1 / 3, "big": 0, ORACLE: 0})
    assert table["misses"].to_dict() == {"stay": 0, "cheap": 1, "big": 1, ORACLE: 0}
    assert table["late"].to_dict() == {"stay": 0, "cheap": 0.5, "big": 0.5, ORACLE: 0}
    assert table["cost_ratio"]["big"] == pytest.approx(0.625)
    assert table["charged"].to_dict() == {
        "stay": 0,
        "cheap": 0,
        "big": 0,
        ORACLE: 0,
    }  # the dearest, large, is cheaper here
    slower = HELD.assign(runtime_s=HELD["runtime_s"].where(HELD["machine_type"] != "large", 4.0))
    costly = compare({"cheap": {"j": "slow"}}, truth_of(slower, MACHINES, {"j": 5.0}), 0.05).set_index("rule")
    assert costly["charged"]["cheap"] == pytest.approx(10.0 / 3.0 - 1)


def test_a_cell_without_held_back_runs_is_refused():
    with pytest.raises(BadInput, match="job j has no runs on large; expected every job on every type"):
        truth_of(HELD[HELD["machine_type"] != "large"], MACHINES, {"j": 5.0})


def test_plain_rules_scale_the_runtimes_as_they_say():
    history = runs("j", "a", [9.0, 10.0, 11.0])
    chosen = rule_choices(history, MACHINES, SCORES, {"j": 25.0}, 0.05)
    assert chosen["stay on the source"] == {"j": "a"}
    assert chosen["cheapest an hour"] == {"j": "slow"}
    assert chosen["largest type"] == {"j": "large"}
    assert chosen["runtime × vCPU ratio"] == {"j": "slow"}  # 22 s at a third of the price
    assert chosen["runtime × vCPU ratio; no less memory"] == {"j": "a"}
    assert rule_choices(history, MACHINES, SCORES, {"j": 6.0}, 0.05)["runtime × vCPU ratio"] == {"j": "large"}


def test_in_a_world_that_the_model_describes_the_story_is_cheap_and_right():
    history, held_back = world()
    choices = choose_all(history, MACHINES, SCORES, MULTIPLES)
    told = story(choices, MACHINES, SCORES, history, held_back)
    rules = told.rules.set_index("rule")
    assert rules.loc[OURS, "regret"] <= 0.1
    assert rules.loc[OURS, "misses"] == 0
    assert rules.loc["stay on the source", "misses"] > 0
    assert told.chosen.is_inside and told.everywhere.is_inside
    assert told.chosen.late_low <= told.chosen.late <= told.chosen.late_high
    assert (told.chosen.runs, told.chosen.jobs, told.everywhere.runs) == (60, 6, 180)
    assert (told.runtimes["median_error"] < 0.1).all()
    assert (told.runtimes["below_p95"] > 0.85).all()
    assert told.calibration["n"].sum() == 18
    assert (told.calibration["said"] - told.calibration["late"]).abs().max() < 0.2
    assert told.jobs["job"].tolist() == list(MULTIPLES)


def test_a_claim_that_is_wrong_is_not_inside():
    history, held_back = world()
    choices = choose_all(history, MACHINES, SCORES, MULTIPLES)
    slower = held_back.assign(runtime_s=held_back["runtime_s"] * 3)
    truth = truth_of(slower, MACHINES, {one.job: one.deadline_s for one in choices})
    assert not check_late(choices, truth, {one.job: [one.machine_type] for one in choices}).is_inside


def test_the_sentences_name_type_chance_reason_and_next_run():
    history, _ = world(1)
    told = story_of(choose_type(history, MACHINES, SCORES, "job0", 40.0))
    assert told.answer.startswith("Run job0 on slow: late in < 0.1 %")
    assert "% cheaper a run than a" in told.answer
    assert told.sureness.startswith("80.0 % interval of the chance < 0.1 %, from 20 runs on a")
    assert "on a it is bound by CPU" in told.reason and "on slow it is bound by CPU" in told.reason
    assert told.next_run.startswith("nothing")
    assert told.types["machine_type"][0] == "slow" and told.types["verdict"][0] == "answer"


def test_an_answer_that_is_not_sure_says_so():
    history, _ = world(1)
    told = story_of(choose_type(history, MACHINES, SCORES, "job0", 3.0))
    assert "No type is surely late in at most 5.0 %" in told.answer
    unsure = story_of(choose_type(history, MACHINES, SCORES, "job0", 23.0, model=BeliefParams(error_speed=0.2)))
    assert "slow would be cheaper, but cannot be told to be safe" in unsure.sureness
    assert unsure.next_run.startswith("one run of usual size on slow: safe if it takes at most")
