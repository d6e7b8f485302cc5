"""Shared machines and unknown workloads: what is superposed, what is measured, and that truth is found."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.workloads.evaluate.conditions import shared_results, superposed, unknown_results
from tasks.workloads.evaluate.items import cut, splits_of
from tasks.workloads.evaluate.known import cohort_of
from tasks.workloads.params import EvaluateParams, IdentifyParams, WindowParams
from tasks.workloads.telemetry import Conditions, Counter, Telemetry

PARAMS = IdentifyParams()


def test_rates_are_added_levels_above_idle_and_the_group_is_left_alone():
    counters = (
        Counter("disk.reads", is_rate=True),
        Counter("tcp.connections"),
        Counter("own.cpu.user_cores", is_rate=True, scope="workload"),
    )
    one = Telemetry("a", counters, np.arange(3.0), np.full((3, 3), 4.0), "a")
    other = Telemetry("b", counters[:2], np.arange(2.0), np.full((2, 2), 10.0), "b")
    found = superposed(one, other, 0.5, {"tcp.connections": 6.0})
    np.testing.assert_array_equal(found.values, [[9, 6, 4]] * 2)
    assert (found.run_id, found.workload, found.n_samples) == ("a", "a", 2)


@pytest.fixture(scope="module")
def results(campaign):
    runs = campaign(("redis", "mysql", "nginx", "bayes"), rounds=3)
    cohort = cohort_of(cut(runs, WindowParams()).items, PARAMS)
    splits = splits_of(cohort.items, "by_round", EvaluateParams()).splits
    return shared_results(cohort, [], splits, PARAMS, 0, ""), unknown_results(cohort, splits[:1], PARAMS, 0, "")


def test_each_condition_has_the_model_and_plain_ways_in_one_table(results):
    (figures, table), _ = results
    assert set(table["condition"]) >= {"alone", "tenth", "third", "pair", "unlearned", "pair unlearned"}
    assert set(table["method"]) == {"model", "model, number known", "nnls", "nearest", "forest"}
    assert figures["shared.splits"] == 3
    assert figures["shared.right.alone.machine.model"] >= 0.9
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()


def test_unknown_workloads_get_higher_scores_than_known_ones(results):
    _, (figures, tables) = results
    assert figures["unknown.pairs"] == figures["unknown.pairs_to_choose"] == 6
    assert figures["unknown.auroc"] > 0.9
    assert set(tables["unknown_scores"]) >= {"run_id", "is_unknown", "score"}


def test_too_few_workloads_say_why(campaign):
    cohort = cohort_of(cut(campaign(("redis", "mysql"), rounds=1), WindowParams()).items, PARAMS)
    figures, _ = unknown_results(cohort, [], PARAMS, 0, "")
    assert figures["unknown.auroc"] is None
    assert figures["unknown.auroc.reason"] == "2 workloads; at least 3 are needed, to hold out two"
    figures, table = shared_results(cohort, [], [], PARAMS, 0, "")
    assert table.empty and figures["shared.right.reason"] == "2 workloads; at least 3 are needed"


def test_recorded_conditions_are_tested_and_never_learned(campaign):
    """A run that says how it was recorded stands in a condition of its own."""
    runs = campaign(rounds=3)
    cohort = cohort_of(cut(runs, WindowParams()).items, PARAMS)
    splits = splits_of(cohort.items, "by_round", EvaluateParams()).splits

    shared = [replace(runs[0], round="shared1", conditions=Conditions("shared1-001", "pair", partner="mysql"))]
    _, table = shared_results(cohort, shared, splits, PARAMS, 0, "")
    assert "recorded pair" in set(table["condition"])
