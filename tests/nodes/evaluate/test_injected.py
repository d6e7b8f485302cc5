"""Injected degradation, from an unlabelled history to figures, by plain detectors and a small network."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.detect.contenders import DETECTORS
from tasks.nodes.evaluate.injection import CALM, CALM_MEASURES, MEASURES, inject, injected_figures
from tasks.nodes.evaluate.params import NAMES, InjectionParams
from tasks.nodes.synthetic import synthetic_history

ZSCORE = {"zscore": DETECTORS["zscore"]}
INJECTION = InjectionParams(repeats=2, least_runs=10, least_factor=1.5, largest_factor=2.0)


@pytest.fixture(scope="module")
def fleet(unlabelled):
    """Four nodes of two machine types with 40 runs of each of two benchmarks, nobody knows of which were stressed."""
    history = synthetic_history(nodes=4, types=2, runs=40, stressed=0.0, seed=4)
    kinds = history.executions["node"].isin(["node-1", "node-2"]).map({True: "m", False: "k"}).astype("str")
    return unlabelled(replace(history, executions=history.executions.assign(machine_type=kinds)))


@pytest.fixture(scope="module")
def found(fleet, prepare, asked):
    params = asked(injection=INJECTION)
    return inject(fleet, prepare, ZSCORE, params), params


def test_every_detector_is_measured_in_every_way(found):
    injected, params = found
    figures = injected_figures(injected, params)
    for name in ("zscore",):
        for kind in ("replaced", "shifted"):
            for measure in MEASURES:
                value = figures[f"inject.{kind}.{measure}.{name}"]
                assert value is not None or figures[f"inject.{kind}.{measure}.{name}.reason"]
            assert figures[f"inject.{kind}.recall.{name}"] is not None
        for measure in CALM_MEASURES:
            assert figures[f"inject.{CALM}.{measure}.{name}"] is not None
    assert figures["inject.nodes"] == 4 and figures["inject.node_months"] > 0
    assert (figures["inject.types"], figures["inject.executions"]) == (2, 320)


def test_a_large_shift_is_told_at_once_and_calm_nodes_are_left_alone(found):
    """By a factor of 1.5 and more, ten deviations, z-scores tell every spoiled execution."""
    figures = injected_figures(*found)
    assert figures["inject.shifted.recall.zscore"] > 0.95 and figures["inject.shifted.missed.zscore"] == 0
    assert figures["inject.shifted.delay_executions.zscore"] == 0
    assert figures["inject.shifted.false_alarms_other_per_1000.zscore"] < 100


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_a_network_that_knows_of_no_stress_gives_no_verdicts_and_says_so(fleet, prepare, asked, variant):
    params = asked(injection=InjectionParams(repeats=1, least_runs=10, kinds=("shifted",)), variants=(variant,))
    figures = injected_figures(inject(fleet, prepare, {}, params), params)
    assert figures[f"inject.shifted.recall.{NAMES[variant]}"] is None
    assert "known to be stressed" in figures[f"inject.shifted.recall.{NAMES[variant]}.reason"]


def test_labels_and_single_nodes_are_clear_reasons(history, fleet, prepare, asked):
    params = asked(injection=INJECTION)
    labelled = injected_figures(inject(history, prepare, ZSCORE, params), params)
    assert (
        labelled["inject.shifted.recall.model"] is None
        and "see detect" in labelled["inject.shifted.recall.model.reason"]
    )
    one = fleet.where((fleet.executions["node"] == "node-1").to_numpy())
    alone = injected_figures(inject(one, prepare, ZSCORE, params), params)
    assert "at least two" in alone["inject.unaltered.alarms.zscore.reason"] and alone["inject.nodes"] == 1


def test_runs_of_applications_make_no_node_long_lived(fleet, prepare, asked):
    """They are left out of what is judged: a node that ran little else has nothing to be told by."""
    named = fleet.executions["aspect"].where(fleet.executions["node"] != "node-1", "application")
    params = asked(injection=INJECTION, variants=())
    apps = replace(fleet, executions=fleet.executions.assign(aspect=named))
    assert injected_figures(inject(apps, prepare, ZSCORE, params), params)["inject.nodes"] == 3


def test_on_one_machine_type_results_are_shifted_but_not_replaced(fleet, prepare, asked):
    params = asked(injection=INJECTION, variants=())
    alike = replace(fleet, executions=fleet.executions.assign(machine_type="m"))
    figures = injected_figures(inject(alike, prepare, ZSCORE, params), params)
    assert figures["inject.shifted.recall.zscore"] is not None
    assert "one machine type" in figures["inject.replaced.recall.zscore.reason"]


def test_what_is_learned_never_was_spoiled(fleet, prepare, asked, monkeypatch):
    """Every case that a detector is given has the training and validation values of the history as it is."""
    seen = []

    def watching(case):
        of = case.history.metrics["execution"].to_numpy()
        learned = (case.is_train | case.is_validation)[of]
        seen.append(np.sort(case.history.metrics["value"].to_numpy()[learned]))
        return np.arange(len(case.is_train), dtype=float)

    params = asked(injection=INJECTION, variants=())
    inject(fleet, prepare, {"watching": watching}, params)
    assert len(seen) == 5
    for one in seen[1:]:
        np.testing.assert_array_equal(one, seen[0])
