"""Spoiled results: exactly those that were drawn, by exactly what was asked; delays and false alarms by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.detect.plain import DETECTORS
from tasks.nodes.evaluate.injection import (
    CALM,
    CALM_MEASURES,
    MEASURES,
    alarm_rows,
    calm_measures,
    donors_of,
    inject,
    long_lived,
    node_months,
    replaced,
    shifted,
    spoil,
    spoiled_measures,
    types_drawn,
)
from tasks.nodes.params import AlarmParams, InjectionParams
from tasks.nodes.type_tables import type_names
from tests.nodes.synthetic import synthetic_history

PARAMS = InjectionParams(least_runs=5)
ALARM = AlarmParams(flagged=2, last=2, min_executions=2)


def two_kinds(runs):
    """Four nodes of two machine types, two benchmarks, none stressed."""
    history = synthetic_history(nodes=4, types=2, runs=runs, stressed=0.0, seed=4)
    kinds = history.executions["node"].isin(["node-1", "node-2"]).map({True: "m", False: "k"}).astype("str")
    return replace(history, executions=history.executions.assign(machine_type=kinds))


@pytest.fixture(scope="module")
def fleet():
    return two_kinds(20)


@pytest.fixture(scope="module")
def tested(fleet):
    return np.arange(len(fleet.executions)) >= 80


def values_of(history, execution):
    own = history.metrics[history.metrics["execution"] == execution]
    return dict(zip(own["metric"], own["value"], strict=True))


def test_nodes_that_ran_often_are_long_lived(fleet):
    assert long_lived(fleet, PARAMS) == ["node-1", "node-2", "node-3", "node-4"]
    assert long_lived(fleet, InjectionParams(least_runs=21)) == []
    early = fleet.where((fleet.executions["node"] != "node-2").to_numpy() | (np.arange(len(fleet.executions)) < 20))
    assert long_lived(early, InjectionParams(least_runs=10)) == ["node-1", "node-3", "node-4"]
    assert len(long_lived(fleet, InjectionParams(least_runs=5, max_nodes=2))) == 2


def test_of_many_executions_whole_types_are_drawn_of_each_aspect_in_turn():
    """Four types of 10 executions, three of them of the CPU: of 25 the disk's type and one of the CPU have room."""
    rows = pd.DataFrame({"benchmark": list("abcd") * 10, "aspect": ["cpu", "cpu", "cpu", "disk"] * 10})
    rows = rows.assign(template_hash="")
    for seed in range(5):
        kept = rows["benchmark"][types_drawn(rows, 25, np.random.default_rng(seed))].value_counts()
        assert len(kept) == 2 and kept["d"] == 10 and set(kept) == {10}
    assert types_drawn(rows, 40, np.random.default_rng(0)).all()
    assert types_drawn(rows, 3, np.random.default_rng(0)).sum() == 10  # one type at least


def test_a_type_that_is_too_large_leaves_room_for_others():
    """Of 20, the type of 30 has no room unless it is the first; the other three, of 5 each, have."""
    rows = pd.DataFrame({"benchmark": ["a"] * 30 + list("bcd") * 5, "aspect": ["cpu"] * 30 + ["disk"] * 15})
    rows = rows.assign(template_hash="")
    found = [set(rows["benchmark"][types_drawn(rows, 20, np.random.default_rng(seed))]) for seed in range(10)]
    assert {frozenset(one) for one in found} == {frozenset("a"), frozenset("bcd")}


@pytest.mark.parametrize("kind", ["replaced", "shifted"])
def test_only_drawn_results_of_tested_executions_change(fleet, tested, prepare, kind):
    tables = prepare(fleet, ~tested)
    found, is_spoiled = spoil(fleet, tables, tested, kind, PARAMS, np.random.default_rng(0))
    assert is_spoiled.any() and tested[is_spoiled].all()
    assert fleet.executions.loc[is_spoiled, "node"].nunique() == 2
    for execution in range(len(fleet.executions)):
        is_same = values_of(fleet, execution) == values_of(found, execution)
        assert is_same is not bool(is_spoiled[execution]), execution
    pd.testing.assert_series_equal(found.executions["started_at"], fleet.executions["started_at"])
    same, other = (spoil(fleet, tables, tested, kind, PARAMS, np.random.default_rng(seed)) for seed in (0, 1))
    pd.testing.assert_frame_equal(found.metrics, same[0].metrics)
    assert not np.array_equal(is_spoiled, other[1])


def test_donors_ran_the_same_benchmark_on_another_machine_type_and_are_not_spoiled(fleet, tested):
    is_drawn = tested & (fleet.executions["node"] == "node-1").to_numpy()
    donors = donors_of(fleet, is_drawn, tested, np.random.default_rng(0))
    assert (donors >= 0).all() and tested[donors].all()
    assert set(fleet.executions["machine_type"].iloc[donors]) == {"k"}
    types = type_names(fleet.executions).to_numpy()
    assert (types[donors] == types[is_drawn]).all()
    alike = replace(fleet, executions=fleet.executions.assign(machine_type="m"))
    assert (donors_of(alike, is_drawn, tested, np.random.default_rng(0)) == -1).all()


def test_a_replaced_execution_has_the_metrics_and_duration_of_the_other(fleet):
    executions = fleet.executions.assign(duration_s=np.arange(len(fleet.executions), dtype=float))
    found = replaced(replace(fleet, executions=executions), np.array([3, 7]), np.array([10, 10]))
    for taker in (3, 7):
        assert values_of(found, taker) == values_of(fleet, 10)
        assert found.executions["duration_s"].iloc[taker] == 10
    assert values_of(found, 10) == values_of(fleet, 10) and values_of(found, 4) == values_of(fleet, 4)
    assert found.metrics["execution"].is_monotonic_increasing


def test_a_shifted_rate_is_divided_and_a_latency_multiplied(fleet, tested, prepare):
    factors = np.ones(len(fleet.executions))
    row = int(np.flatnonzero(fleet.executions["benchmark"] == "cpu-sysbench")[0])
    factors[row] = 2.0
    before, after = values_of(fleet, row), values_of(shifted(fleet, prepare(fleet, ~tested), factors), row)
    assert after["events_per_second"] == pytest.approx(before["events_per_second"] / 2)
    assert after["latency_avg"] == pytest.approx(before["latency_avg"] * 2)
    assert after["num_threads"] == before["num_threads"]  # a setting is neither better nor worse


def test_one_machine_type_or_one_node_is_a_clear_reason(fleet, tested, prepare):
    alike = replace(fleet, executions=fleet.executions.assign(machine_type="m"))
    with pytest.raises(ValueError, match="one machine type"):
        spoil(alike, prepare(alike, ~tested), tested, "replaced", PARAMS, np.random.default_rng(0))
    is_one = (fleet.executions["node"] == "node-1").to_numpy()
    one = fleet.where(is_one)
    with pytest.raises(ValueError, match="at least two are needed"):
        spoil(one, prepare(one, ~tested[is_one]), tested[is_one], "shifted", PARAMS, np.random.default_rng(0))


def verdicts(flags, nodes, scores=None):
    """An execution each hour, all of one aspect."""
    n = len(flags)
    executions = pd.DataFrame(
        {"node": list(nodes), "aspect": "cpu", "execution_id": [f"e{at}" for at in range(n)], "is_contaminated": False,
         "started_at": pd.Timestamp("2026-01-05") + pd.to_timedelta(np.arange(n), unit="h")}
    )  # fmt: skip
    told = np.asarray(flags, dtype=bool)
    return executions, told.astype(float) if scores is None else np.asarray(scores, dtype=float), told


def mask(*marks):
    return np.array(marks, dtype=bool)


def test_delays_run_from_the_first_spoiled_execution():
    """Node a is spoiled from row 3 on, flagged at rows 5 and 7: one execution of a earlier, and two hours. The alarm
    (two in a row) is raised at row 7. Node b has one flag in three."""
    found = spoiled_measures(*verdicts([0, 0, 0, 0, 1, 1, 0, 1], "abaababa"), mask(0, 0, 0, 1, 0, 1, 0, 1), ALARM)
    assert set(found) == set(MEASURES)
    assert found["delay_executions"] == 1 and found["delay_hours"] == 2 and found["missed"] == 0
    assert found["alarm_delay_executions"] == 2 and found["alarm_delay_hours"] == 4 and found["alarm_missed"] == 0
    assert found["recall"] == pytest.approx(2 / 3)
    assert found["false_alarms_before_per_1000"] == 0
    assert found["false_alarms_other_per_1000"] == pytest.approx(1000 / 3)  # rows 1, 4, 6


def test_a_flag_before_is_a_false_alarm_and_no_detection():
    found = spoiled_measures(*verdicts([1, 0, 0, 0], "aaaa"), mask(0, 0, 1, 1), ALARM)
    assert found["false_alarms_before_per_1000"] == 500
    assert found["missed"] == 1 and np.isnan(found["delay_executions"]) and found["recall"] == 0
    assert np.isnan(found["false_alarms_other_per_1000"])  # there is no other node


def test_alarms_of_an_untouched_history_are_counted_for_each_node_and_month():
    """Node a: two flags in a row, one alarm that goes on. From the first to the last of a three hours, of b none."""
    told = verdicts([0, 1, 1, 1, 0], "aaaab")
    assert alarm_rows(*told, ALARM).tolist() == [2]
    assert node_months(told[0]) == pytest.approx(3 / 730.5)
    found = calm_measures(*told, ALARM)
    assert set(found) == set(CALM_MEASURES)
    assert found["false_alarms_per_1000"] == 600 and found["alarms"] == 1
    assert found["alarms_per_node_month"] == pytest.approx(730.5 / 3)


ZSCORE = {"zscore": DETECTORS["zscore"]}
INJECTION = InjectionParams(repeats=2, least_runs=10, least_factor=1.5, largest_factor=2.0)


@pytest.fixture(scope="module")
def vms(unlabelled):
    """The same with 40 runs, of which nobody knows which were stressed."""
    return unlabelled(two_kinds(40))


@pytest.fixture(scope="module")
def found(vms, asked):
    return inject(vms, ZSCORE, asked(injection=INJECTION))


def test_every_detector_is_measured_in_every_way(found):
    figures, _ = found
    for kind in ("replaced", "shifted"):
        for measure in MEASURES:
            key = f"inject.{kind}.{measure}.zscore"
            assert figures[key] is not None or figures[f"{key}.reason"]
        assert figures[f"inject.{kind}.recall.zscore"] is not None
    assert all(figures[f"inject.{CALM}.{measure}.zscore"] is not None for measure in CALM_MEASURES)
    assert figures["inject.nodes"] == 4 and figures["inject.node_months"] > 0
    assert (figures["inject.types"], figures["inject.executions"]) == (2, 320)


def test_a_large_shift_is_told_at_once_and_calm_nodes_are_left_alone(found):
    """By a factor of 1.5 and more, ten deviations, z-scores tell every spoiled execution."""
    figures, _ = found
    assert figures["inject.shifted.recall.zscore"] > 0.95 and figures["inject.shifted.missed.zscore"] == 0
    assert figures["inject.shifted.delay_executions.zscore"] == 0
    assert figures["inject.shifted.false_alarms_other_per_1000.zscore"] < 100


def test_replaced_results_that_are_worse_than_the_level_of_the_node_are_told_apart(found):
    """Two machine types, one slower: about half of what is replaced is worse, and it is told as surely as any."""
    rows = found[1].set_index("kind")
    n_worse, n_replaced = rows.loc["replaced_worse", "n_spoiled"].sum(), rows.loc["replaced", "n_spoiled"].sum()
    assert 0 < n_worse < n_replaced
    assert rows.loc["replaced_worse", "recall"].mean() > 0.9


def test_budgets_are_counted_on_the_history_as_it_is(vms, asked):
    params = asked(injection=InjectionParams(repeats=1, least_runs=10, kinds=("shifted",)))
    figures = inject(vms, {"headline": DETECTORS["headline"]}, params)[0]
    assert figures["budget.n_alarms.headline.unaltered.at_1"] >= 0
    assert figures["budget.stated_per_day.headline.unaltered.at_1000"] > 0


def test_labels_single_nodes_and_a_single_machine_type_are_clear_reasons(history, vms, asked):
    params = asked(injection=INJECTION)
    labelled = inject(history, ZSCORE, params)[0]
    assert labelled["inject.shifted.recall.zscore"] is None
    assert "see detect" in labelled["inject.shifted.recall.zscore.reason"]
    one = vms.where((vms.executions["node"] == "node-1").to_numpy())
    alone = inject(one, ZSCORE, params)[0]
    assert "at least two" in alone["inject.unaltered.alarms.zscore.reason"] and alone["inject.nodes"] == 1
    alike = inject(replace(vms, executions=vms.executions.assign(machine_type="m")), ZSCORE, params)[0]
    assert alike["inject.shifted.recall.zscore"] is not None
    assert "one machine type" in alike["inject.replaced.recall.zscore.reason"]


def test_what_is_learned_never_was_spoiled(vms, asked, monkeypatch):
    """Every case that a detector is given has the training and validation values of the history as it is."""
    seen = []

    def watching(case):
        of = case.history.metrics["execution"].to_numpy()
        learned = (case.is_train | case.is_validation)[of]
        seen.append(np.sort(case.history.metrics["value"].to_numpy()[learned]))
        return np.arange(len(case.is_train), dtype=float)

    params = asked(injection=INJECTION, variants=())
    inject(vms, {"watching": watching}, params)
    assert len(seen) == 5
    for one in seen[1:]:
        np.testing.assert_array_equal(one, seen[0])
