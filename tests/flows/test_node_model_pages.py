"""What the artifacts about the model say, from tables alone: no server and no model is needed."""

import pandas as pd

from flows.nodes import (
    evaluation_page,
    fingerprints_page,
    states_page,
)
from tasks.nodes.network_steps import FingerprintedNodes
from tasks.nodes.verdict_steps import WatchedNodes

NOW = pd.Timestamp("2026-01-06 12:00")
WATCHED = WatchedNodes(model_id="model-1", n_nodes=2, alarms=[], suspected=[], excluded=["node-2"])
STATES = pd.DataFrame(
    {
        "node": ["node-2", "node-1"],
        "aspect": ["disk", "disk"],
        "state": ["confirmed", "healthy"],
        "since": [NOW, pd.NaT],
        "n_executions": [1200, 40],
        "n_recent_flagged": [4, 0],
        "n_left_out": [1, 0],
        "is_excluded": [True, False],
        "cost_share": [0.05, float("nan")],
        "is_emulated": [False, False],
    }
)
FIGURES = {
    "n": 1800,
    "detect.f1_outlier.detector": 0.8,
    "detect.f1_outlier.detector.low": 0.7,
    "detect.f1_outlier.detector.high": 0.9,
    "detect.f1_outlier.detector.deviation": 0.1,
    "detect.f1_outlier.zscore": 0.85,
    "detect.f1_outlier.zscore.random": 0.6,
    "detect.f1_outlier.zscore.random.deviation": 0.02,
    "detect.f1_outlier.paper": None,
    "detect.f1_outlier.paper.reason": "no graph",
}


def plain(page: str) -> str:
    return page.replace("\\", "")


def test_states_say_who_is_to_be_left_out_and_what_watching_costs() -> None:
    page = plain(states_page("log", WATCHED, STATES, pd.DataFrame({"message": []}), [], ["node-1"]))
    assert "To be left out: node-2 (disk)." in page
    assert "1 confirmed, 0 suspected, 0 cleared, 1 healthy." in page
    assert "benchmarks take 5.0 % of a node's time (median of 1 node), 5.0 % at most (node-2)." in page
    assert "| node-2 | disk | confirmed | 2026-01-06 12:00 | 1,200 | 4 | 1 | 5.0 % |" in page
    assert "| node-1 | disk | healthy | – | 40 | 0 | 0 | – |" in page
    assert "Record them by hand." in page


def test_emulated_nodes_are_called_so() -> None:
    states = STATES.assign(is_emulated=[True, False])
    page = plain(states_page("log", WATCHED, states, pd.DataFrame({"message": []}), [], []))
    assert "To be left out: node-2 (emulated) (disk)." in page
    assert "| node-2 (emulated) | disk | confirmed |" in page and "| node-1 | disk | healthy |" in page
    found = FingerprintedNodes(model_id="m", n_executions=9, n_fingerprints=9, best=["node-2"])
    row = {"aspect": "all", "rank": 1, "score": 1.5, "low": 1.0, "high": 2.0, "is_tied": False, "n_executions": 9}
    scores = pd.DataFrame([{**row, "node": "node-2", "is_emulated": True}])
    page = plain(fingerprints_page("log", found, scores))
    assert "Best: node-2 (emulated)." in page and "| all | 1 | node-2 (emulated) | 1.50 |" in page


def test_without_states_nobody_is_left_out() -> None:
    page = states_page("log", WATCHED, STATES.head(0), pd.DataFrame({"message": []}), [], [])
    assert "To be left out: none." in page
    assert "confirmed" not in page


def test_an_evaluation_says_first_whether_the_detector_is_ahead() -> None:
    page = plain(evaluation_page("source log", FIGURES))
    assert page.startswith("# Answers about the nodes of source log")
    assert "| later executions | -0.05 (0.80 against 0.85; robust z-scores) |" in page
    assert "- F1 of stressed, later executions, all doses: 0.80; better: robust z-scores 0.85" in page
    assert "| detect.f1_outlier.detector | 0.8 (0.7 to 0.9) |" in page
    assert "| detect.f1_outlier.zscore.random | 0.6 ± 0.02 |" in page
    assert "| detect.f1_outlier.paper | no graph |" in page
    assert "detect.f1_outlier.detector.low" not in page


def test_an_evaluation_of_plain_detectors_compares_nothing() -> None:
    page = plain(evaluation_page("source log", {"n": 360, "detect.f1_outlier.zscore": 0.85}))
    assert page.startswith("# Answers about the nodes of source log")
    assert "learned" not in page and "falls short" not in page
