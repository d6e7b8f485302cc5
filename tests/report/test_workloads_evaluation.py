"""The page of an evaluation of workloads: the tables of the paper from those of the protocol, what is missing said."""

import re

import pandas as pd
import pytest

from tasks.report.evaluation import Evaluation
from tasks.report.result import as_markdown
from tasks.report.workloads_evaluation import confusion_figure, evaluation_result, known_table, online_accuracy

FIGURES = {
    "n": 40, "classes": 4, "seed": 0, "data_sha256": "0123456789abcdef", "known.base": "random",
    "known.accuracy": 0.98, "known.accuracy.random": 0.98, "known.accuracy.random.model": 0.98,
    "known.accuracy.random.trees": 0.98, "known.macro_f1.random.trees": 0.975, "known.accuracy.random.dtw": 0.9,
    "known.confirmed.random.dtw": 0.85, "known.accuracy.by_machine": None,
    "known.accuracy.by_machine.reason": "all runs are of one machine; at least two are needed", "unknown.auroc": 0.95,
    "unknown.false_known_at_95": 0.00004, "online.accuracy.5s": 0.7, "online.accuracy.5s.whole": 0.6,
    "online.accuracy.30s": 1.0, "threshold.false_reject": 0.05,
}  # fmt: skip


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
    }  # fmt: skip


@pytest.fixture
def found():
    return Evaluation(FIGURES, tables())


def test_the_tables_of_the_paper_are_in_the_result(found, rows_of, told):
    result = evaluation_result(found, "recorded")
    words = told(result)
    assert "40 runs or windows of 4 workloads" in words
    assert "known.accuracy.by_machine: all runs are of one machine; at least two are needed" in words
    known = {row.pop("name"): list(row.values()) for row in rows_of(result, "Known workloads")}
    assert known["boosted trees on phases (random runs)"] == ["98.0 %", "0.97", "–"]  # 0.975 as a double
    assert known["distance of phases (DTW) (random runs)"][-1] == "85.0 %"
    [unknown] = rows_of(result, "What never-seen workloads are taken for")
    assert unknown == {"workload": "bayes", "n_runs": "10", "as cnn": "67.0 %", "as redis": "33.0 %", "said": "90.0 %"}
    spreads = {
        row.pop("workload"): list(row.values()) for row in rows_of(result, "Distances within workloads and to others")
    }
    assert spreads["redis"] == ["212", "52.7", "400", "1", "28.1", "52.7", "400", "1"]
    assert set(spreads) == {"redis"}


def test_the_figures_stand_for_what_the_tables_hold(found):
    shown = {one.name: one for part in evaluation_result(found, "recorded").sections for one in part.figures}
    assert shown["confusion"].evidence == "n = 18 runs called by the model, 94.4 % right; percent of what ran"
    assert shown["online"].evidence == "n = 12 held-out runs of 4 workloads"
    scores = shown["open-set"]
    assert scores.evidence == "n = 6 scores of known runs, 6 of unknown ones, over 2 choices of held-out workloads"
    assert scores.chart.keywords["rule"] == 0.3
    assert "so are 33.3 % of the unknown ones" in scores.words


def test_the_worst_error_is_that_with_the_largest_share_of_its_row_and_unknown_has_the_last_column():
    rows = pd.DataFrame({"actual": ["b", "a", "b", "a"], "predicted": ["", "a", "b", "b"], "n": [2, 90, 1, 10]})
    found = confusion_figure(rows, "model m")
    assert "worst: 66.7 % of the runs of b called unknown" in found.words
    assert found.evidence.startswith("n = 103 runs called by model m, 88.3 % right")
    assert list(dict.fromkeys(found.chart.args[0]["called"])) == ["a", "b", "unknown"]
    assert confusion_figure(rows.head(0), "model m").chart is None


def test_table_2_has_a_row_a_split_and_method():
    figures = {
        "known.accuracy.random.trees": 0.93, "known.accuracy.random": 0.93, "known.accuracy": 0.1,
        "known.accuracy.random.trees.deviation": 0.01, "known.accuracy.random.model": 0.95,
        "known.accuracy.by_time.forest": 0.5,
    }  # fmt: skip
    assert [row[:2] for row in known_table(figures).cells()] == [
        ["the model: sums of known fingerprints (random runs)", "95.0 %"],
        ["boosted trees on phases (random runs)", "93.0 %"],
        ["random forest, no phases (later runs)", "50.0 %"],
    ]


def test_seconds_until_a_run_is_known_rise():
    figures = {"online.accuracy.5s": 0.5, "online.accuracy.10s": None, "online.accuracy.30s": 1.0}
    assert online_accuracy(figures) == {5.0: 0.5, 30.0: 1.0}


def test_an_evaluation_without_tables_is_a_result_too(told):
    found = Evaluation({"n": 1, "classes": 1, "seed": 0, "known.base": "random"}, {})
    words = told(evaluation_result(found, "one run"))
    assert "No split could be made." in words
    assert "Too few workloads to hold some out as unknown." in words
    assert "No run was called from its first seconds." in words


def test_the_artifact_holds_tables_and_small_pictures(found):
    result = evaluation_result(found, "recorded | [x](y)")
    names = [one.name for part in result.sections for one in part.figures]
    artifact = as_markdown(result, pictures=names)
    pictures = re.findall(r"!\[[^\]]+\]\(data:image/png;base64,([A-Za-z0-9+/=]+)\)", artifact)
    assert len(pictures) == 3
    assert "recorded \\| \\[x\\]\\(y\\)" in artifact
