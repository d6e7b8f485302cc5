"""Figures by dose: by level, by name where there is no level; and keys of nodes without a machine type."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.evaluate.applications import compare_by_machine_type, node_matrix, rank_figures
from tasks.nodes.evaluate.detection import COLUMNS, Detection, detection_results
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.splits import PROTOCOLS
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.synthetic import synthetic_history
from tasks.nodes.tabulating import learn_tables


@pytest.fixture
def measured():
    """A function of (dose, level, whether it was flagged): figures and tables of these beside two calm executions."""

    def results(*stressed):
        rows = [("none", None, False), ("", 0, False), *stressed]
        executions = pd.DataFrame(
            {
                "node": "n", "benchmark": "x", "template_hash": "", "is_stressed": [False] * 2 + [True] * len(stressed),
                "dose": [dose for dose, _, _ in rows],
                "dose_level": pd.array([level for _, level, _ in rows], dtype="Int64"),
            }
        )  # fmt: skip
        flags = np.array([is_flagged for _, _, is_flagged in rows])
        about = {"protocol": "chronological", "round": 0, "split": "all", "detector": "d"}
        told = {"execution": np.arange(len(rows)), "score": flags.astype(float), "threshold": 0.5, "is_flagged": flags}
        judged = pd.DataFrame(about | told)[COLUMNS]
        return detection_results(executions, Detection(judged, dict.fromkeys(PROTOCOLS, "")), ["d"])

    return results


def test_a_dose_with_a_level_is_measured_by_it_and_one_without_by_its_name(measured):
    figures, tables = measured(
        ("cpu-2", 1, True), ("cpu-2", 1, False), ("1", None, True), ("CPU 16.5", None, True), ("disk-hdd", 0, False)
    )
    recalls = {key: value for key, value in figures.items() if key.startswith("detect.recall.d.dose_")}
    told = {key.removeprefix("detect.recall.d."): value for key, value in recalls.items() if "reason" not in key}
    assert told == {
        "dose_1": pytest.approx(2 / 3), "dose_2": None, "dose_3": None, "dose_cpu-16-5": 1, "dose_disk-hdd": 0,
    }  # fmt: skip
    assert figures["detect.recall.d.dose_2.reason"].startswith("no tested execution was stressed at this dose")
    assert "detect.doses_left_out" not in figures
    assert tables["detection"].set_index("dose")["n_stressed"].to_dict() == {
        "any": 5, "dose_1": 3, "dose_cpu-16-5": 1, "dose_disk-hdd": 1,
    }  # fmt: skip


def test_of_many_named_doses_the_most_frequent_are_measured_and_the_others_counted(measured):
    figures, _ = measured(*((f"d{at}", None, True) for at in range(25)), ("d24", None, True))
    named = [key for key in figures if key.startswith("detect.recall.d.dose_d") and not key.endswith("reason")]
    assert (len(named), figures["detect.doses_left_out"]) == (20, 5)
    assert "detect.recall.d.dose_d24" in named


def test_nodes_without_a_machine_type_have_keys_that_name_it_unknown():
    history = synthetic_history(nodes=2, runs=6, types=2)
    history = replace(history, executions=history.executions.assign(machine_type=""))
    every = np.ones(len(history.executions), dtype=bool)
    params = EvaluateParams(score=ScoreParams(resamples=100), resamples=100)
    matrix = node_matrix(learn_tables(history, every, PreprocessParams()), every, params.score)
    figures = rank_figures(compare_by_machine_type(matrix, params), params)
    assert figures["rank.nodes.unknown"] == 2 and "rank.spearman.unknown" in figures
    assert [key for key in figures if ".." in key or key.endswith(".")] == []
