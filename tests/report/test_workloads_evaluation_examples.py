"""The example runs of an evaluation: two kin, each by its most typical run, over time and side by side."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.report import charts
from tasks.report.workloads_evaluation import (
    evaluated_workloads,
    evaluation_result,
    examples_of,
    kin_among,
    levels_of,
    typical_of_the_most_alike,
)
from tasks.workloads.evaluate.protocol import Evaluation
from tasks.workloads.identify.phases import learn_scale
from tasks.workloads.params import EvaluateParams, IdentifyParams, WindowParams
from tests.workloads.identify.synthetic import draw_kin, draw_run, draw_runs, draw_workload

N_COUNTERS = 12


@pytest.fixture(scope="module")
def runs():
    """Five runs each of a workload and its kin, and of two that are like none."""
    rng = np.random.default_rng(11)
    lone = [draw_workload(name, N_COUNTERS, 3, rng) for name in ("alone", "zeta")]
    first = draw_workload("mariadb", N_COUNTERS, 3, rng)
    return draw_runs([*lone, first, draw_kin(first, "postgresql", rng)], 5, rng)


def test_the_two_workloads_that_are_most_alike_are_shown(runs):
    found = examples_of(runs, EvaluateParams(), IdentifyParams())
    assert [one.run.split(" ")[0] for one in found.series] == ["mariadb", "postgresql"]
    assert [run.workload for run in found.phases.runs] == ["mariadb", "postgresql"]
    assert {found.alignment.longer.workload, found.alignment.shorter.workload} == {"mariadb", "postgresql"}
    for one in found.series:
        assert len(one.counters) == 5 and one.n_counters == N_COUNTERS
        for counter in one.counters:
            assert len(counter.changes) == len(counter.probabilities)
            assert np.isfinite(counter.probabilities).all()
    assert any(len(counter.changes) for one in found.series for counter in one.counters)


def test_kin_come_before_others_that_are_more_alike(runs):
    assert kin_among(["alone", "mariadb", "postgresql", "zeta"]) == [("mariadb", "postgresql")]
    assert kin_among(["alone", "zeta"]) == []
    levels = np.array([[0.0], [0.1], [5.0]])
    named = [replace(runs[at], workload=name) for at, name in enumerate(("alone", "mariadb", "postgresql"))]
    pairs = kin_among(["alone", "mariadb", "postgresql"])
    assert [run.workload for run in typical_of_the_most_alike(named, levels, pairs)] == ["mariadb", "postgresql"]


def test_the_most_typical_run_stands_for_its_workload(runs):
    odd = replace(runs[-1], run_id="odd", values=runs[-1].values * 40)
    levels = np.array([[0.0], [5.0], [1.0], [1.2], [9.0]])
    named = [replace(runs[at], run_id=f"r{at}", workload=name) for at, name in enumerate("aabbb")]
    assert [run.run_id for run in typical_of_the_most_alike(named, levels, [("a", "b")])] == ["r0", "r3"]
    chosen = examples_of([*runs, odd], EvaluateParams(), IdentifyParams())
    assert "odd" not in [run.run_id for run in chosen.phases.runs]


def test_a_counter_that_a_run_never_measured_has_the_level_of_the_mean(runs):
    values = runs[0].values.copy()
    values[:, 3] = np.nan
    changed = [replace(runs[0], values=values), *runs[1:]]
    levels = levels_of(changed, learn_scale(changed, changed[0].counters))
    assert np.isfinite(levels).all()


def test_long_traces_are_shown_in_windows():
    rng = np.random.default_rng(3)
    drawn = [draw_workload(name, 6, 2, rng) for name in "ab"]
    traces = [draw_run(one, one.name, rng, n_samples=400) for one in drawn]
    found = examples_of(traces, EvaluateParams(windows=WindowParams(width_s=40)), IdentifyParams())
    assert [run.n_samples for run in found.phases.runs] == [40, 40]


def test_one_workload_alone_has_no_examples(runs):
    assert examples_of(runs[:5], EvaluateParams(), IdentifyParams()) is None
    assert examples_of([replace(run, workload=None) for run in runs], EvaluateParams(), IdentifyParams()) is None


def test_figures_2_and_4_stand_in_the_result_of_an_evaluation(runs):
    found = Evaluation({"n": 20, "classes": 4, "seed": 0, "known.base": "random"}, {})
    result = evaluation_result(
        evaluated_workloads(found, "drawn", examples_of(runs, EvaluateParams(), IdentifyParams()))
    )
    [part] = [one for one in result.sections if one.title == "Two typical runs"]
    assert [figure.name for figure in part.figures if figure.chart] == ["series-1", "series-2", "phases", "alignment"]
    assert all("n = 30 samples of one run; 5 of 12 counters" in figure.evidence for figure in part.figures[:2])
    assert part.figures[2].evidence.startswith("n = 2 runs; 12 of 12 counters")
    for figure in part.figures:
        charts.spec_of(figure.chart())
