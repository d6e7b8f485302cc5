"""The page of an evaluation of workloads: the tables of the paper from those of the protocol, what is missing said."""

import re

import pandas as pd
import pytest

from tasks.report.result import as_markdown
from tasks.report.workloads_evaluation import evaluated_workloads, evaluation_result
from tasks.workloads.evaluate.protocol import Evaluation

FIGURES = {
    "n": 40,
    "classes": 4,
    "seed": 0,
    "data_sha256": "0123456789abcdef",
    "known.base": "random",
    "known.accuracy": 0.98,
    "known.accuracy.random": 0.98,
    "known.accuracy.random.trees": 0.98,
    "known.macro_f1.random.trees": 0.975,
    "known.accuracy.random.dtw": 0.9,
    "known.confirmed.random.dtw": 0.85,
    "known.accuracy.by_machine": None,
    "known.accuracy.by_machine.reason": "all runs are of one machine; at least two are needed",
    "unknown.auroc": 0.95,
    "unknown.false_known_at_95": 0.00004,
    "online.accuracy.5s": 0.7,
    "online.accuracy.5s.whole": 0.6,
    "threshold.false_reject": 0.05,
}


def tables():
    scores = [
        {"first": "a", "second": other, "run_id": f"r{at}", "workload": "x", "is_unknown": at % 2 == 1, "score": score}
        for other in "bc"
        for at, score in enumerate((0.1, 0.8, 0.2, 0.9, 0.3, 0.15))
    ]
    confusion = [("redis", "redis", 9), ("nginx", "redis", 1), ("nginx", "nginx", 8)]
    iv = {"mean": 211.9, "deviation": 52.74, "n_pairs": 45, "others_mean": 400.0, "others_deviation": 1.0}
    return {
        "confusion": pd.DataFrame(confusion, columns=["actual", "predicted", "n"]).assign(
            slice="random", method="model"
        ),
        "table_iii": pd.DataFrame(
            {"unknown": "bayes", "known": ["cnn", "redis"], "share": [0.67, 0.33], "said_unknown": 0.9, "n": 10}
        ),
        "table_iv": pd.DataFrame(
            [
                {"workload": "redis", "measure": "dtw", **iv, "others_n_pairs": 300},
                {"workload": "redis", "measure": "ed", **(iv | {"mean": 28.06}), "others_n_pairs": 300},
                {"workload": "once", "measure": "dtw", "mean": None, "deviation": None, "n_pairs": 0,
                 "others_mean": None, "others_deviation": None, "others_n_pairs": 0},
            ]
        ),
        "online": pd.DataFrame(
            {"split": "repeat 1", "method": ["model", "model", "whole"], "seconds": [5.0, 30.0, 5.0],
             "accuracy": [0.7, 1.0, 0.6], "confidence": 0.9, "n": 12}
        ),
        "unknown_scores": pd.DataFrame(scores),
        "phase_lengths": pd.DataFrame({"n_samples": [2, 25], "n": [6, 4], "n_determined": [0, 3]}),
        "thresholds": pd.DataFrame(
            {"split": ["1", "2"], "rule": "radius", "level": "workload", "measure": "dtw", "n_own": 10,
             "n_rejected": [4, 5], "n_other": 30, "n_accepted": 0}
        ),
    }  # fmt: skip


@pytest.fixture
def found():
    return Evaluation(FIGURES, tables())


def test_the_tables_of_the_paper_are_in_the_result(found, rows_of, told):
    result = evaluation_result(evaluated_workloads(found, "recorded"))
    words = told(result)
    assert "40 runs or windows of 4 workloads" in words
    assert "not measured: another machine: all runs are of one machine; at least two are needed" in words
    known = {(row["split"], row["method"]): row for row in rows_of(result, "Known workloads")}
    trees = known["random runs", "boosted trees on phases"]
    assert (trees["accuracy"], trees["precision"], trees["macro_f1"]) == ("98.0 %", "–", "0.97")  # 0.975 as a double
    assert known["random runs", "distance of phases (DTW)"]["confirmed"] == "85.0 %"
    [unknown] = rows_of(result, "What never-seen workloads are taken for")
    assert unknown == {"workload": "bayes", "n_runs": "10", "as cnn": "67.0 %", "as redis": "33.0 %", "said": "90.0 %"}
    spreads = {
        row.pop("workload"): list(row.values()) for row in rows_of(result, "Distances within workloads and to others")
    }
    assert spreads["redis"] == ["212", "52.7", "400", "1", "28.1", "52.7", "400", "1"]
    assert set(spreads["once"]) == {"–"}
    rules = rows_of(result, "Thresholds on the distance")
    assert "its distance is at most the mean (VI-C)" in {row["rule"] for row in rules}
    assert "called right after 5 s" in words


def test_the_figures_stand_for_what_the_tables_hold(found):
    shown = evaluated_workloads(found, "recorded")
    assert shown.confusion.counts.tolist() == [[8, 1], [0, 9]]
    assert shown.online.accuracy == {"first seconds": {5.0: 0.7, 30.0: 1.0}, "whole runs": {5.0: 0.6}}
    assert shown.online.n_runs == 12
    assert (len(shown.scores.known), len(shown.scores.unknown), shown.scores.n_held_out) == (6, 6, 2)
    assert shown.scores.threshold == 0.3
    assert shown.scores.false_known_share == pytest.approx(1 / 3)
    assert shown.adf.rows == [("2 to 4", 6, 0), ("20 to 29", 4, 3)]
    assert shown.distances.by["dtw"]["once"] == (None, None)


def test_an_evaluation_without_tables_is_a_result_too(told):
    found = Evaluation({"n": 1, "classes": 1, "seed": 0, "known.base": "random"}, {})
    words = told(evaluation_result(evaluated_workloads(found, "one run")))
    assert "No split could be made." in words
    assert "Too few workloads to hold some out as unknown." in words
    assert "No run was called from its first seconds." in words
    assert "No workload has two runs, so there is no distance to show." in words


def test_the_artifact_holds_tables_and_small_pictures(found):
    result = evaluation_result(evaluated_workloads(found, "recorded | [x](y)"))
    names = [one.name for part in result.sections for one in part.figures]
    artifact = as_markdown(result, pictures=names)
    pictures = re.findall(r"!\[[^\]]+\]\(data:image/png;base64,([A-Za-z0-9+/=]+)\)", artifact)
    assert len(pictures) == 5
    assert "recorded \\| \\[x\\]\\(y\\)" in artifact
