"""The page of an evaluation of workloads: the tables of the paper from those of the protocol, what is missing said."""

import re

import pandas as pd
import pytest

from tasks.report.workloads_artifact import evaluation_artifact
from tasks.report.workloads_evaluation_page import render_workloads_evaluation
from tasks.report.workloads_evaluation_tables import evaluated_workloads
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


def test_the_tables_of_the_paper_stand_on_the_page(found, tmp_path, tags_of, words_of):
    page = render_workloads_evaluation(evaluated_workloads(found, "recorded"), tmp_path).read_text()
    tags, words = tags_of(page), words_of(page)
    assert tags.open == []
    assert [address for address in tags.addresses if not address.startswith(("#", "data:"))] == []
    assert "40 runs or windows of 4 workloads" in words
    assert "random runs boosted trees on phases 98.0 % – – 0.97 –" in words  # 0.975 is 0.97 as a double
    assert "random runs distance of phases (DTW) 90.0 % – – – 85.0 %" in words
    assert "Not measured: another machine: all runs are of one machine; at least two are needed." in words
    assert "unknown workload runs cnn redis said to be unknown bayes 10 67.0 % 33.0 % 90.0 %" in words
    assert "redis 212 52.7 400 1 28.1 52.7 400 1" in words
    assert "once – – – – – – – –" in words
    assert "its distance is at most the mean (VI-C) whole runs DTW 45.0 % 0.0 %" in words
    assert "unknown runs called known, where 95 % of the known ones are &lt; 0.1 %" in words
    assert "called right after 5 s 70.0 %" in words
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert len(captions) == 5
    assert all("data 0123456789ab" in caption for caption in captions)


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


def test_an_evaluation_without_tables_is_a_page_too(tmp_path, words_of):
    found = Evaluation({"n": 1, "classes": 1, "seed": 0, "known.base": "random"}, {})
    words = words_of(render_workloads_evaluation(evaluated_workloads(found, "one run"), tmp_path).read_text())
    assert "No split could be made." in words
    assert "Too few workloads to hold some out as unknown." in words
    assert "No run was called from its first seconds." in words
    assert "No workload has two runs, so there is no distance to show." in words


def test_the_artifact_holds_tables_and_small_pictures(found):
    artifact = evaluation_artifact(evaluated_workloads(found, "recorded | [x](y)"))
    pictures = re.findall(r"!\[[^\]]+\]\(data:image/png;base64,([A-Za-z0-9+/=]+)\)", artifact)
    assert len(pictures) == 5
    assert all(len(picture) * 3 / 4 < 100_000 for picture in pictures)
    assert "recorded \\| \\[x\\]\\(y\\)" in artifact
    assert "| bayes | 67.0 % | 33.0 % |" in artifact
