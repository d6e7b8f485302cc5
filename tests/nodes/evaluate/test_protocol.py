"""The protocol on histories whose truth is known, and on ones that are hard: figures, or one clear line."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.nodes.detect.plain import DETECTORS
from tasks.nodes.evaluate import detection
from tasks.nodes.evaluate.measures import MEASURES
from tasks.nodes.evaluate.protocol import evaluate_history, sha256_of_history
from tasks.nodes.params import EvaluateParams, ScoreParams
from tests.nodes.synthetic import synthetic_history

QUICK = EvaluateParams(score=ScoreParams(resamples=100), repeats=2, resamples=100)
ONE_SPLIT = QUICK.model_copy(update={"repeats": 1, "max_left_nodes": 1})


def are_explained(figures):
    """Each missing figure has a reason, and no figure is not a number."""
    json.dumps(figures, allow_nan=False)
    missing = [key for key, value in figures.items() if value is None]
    return [key for key in missing if not figures.get(f"{key}.reason")] == []


@pytest.fixture(scope="module")
def labelled():
    """Three nodes, 40 executions of each of three types, a fifth of them stressed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detection, "ORIGINS", (0.4, 0.9))
        patch.setattr(detection, "CURVE_DRAWS", 1)
        return evaluate_history(synthetic_history(nodes=3, runs=40, types=3, seed=1), QUICK)


def test_every_detector_is_measured_under_every_protocol_at_every_dose(labelled):
    figures = labelled.figures
    assert are_explained(figures)
    for name in DETECTORS:
        for protocol in ("", ".random", ".left_node"):
            for dose in ("", ".dose_1", ".dose_2", ".dose_3"):
                for measure in MEASURES:
                    assert f"detect.{measure}.{name}{protocol}{dose}" in figures
            assert figures[f"detect.f1_outlier.{name}{protocol}"] is not None
    assert figures["n"] == 360 and figures["n_nodes"] == 3 and figures["n_types"] == 3
    assert figures["detect.n"] == 72 and figures["detect.n.left_node"] == 360
    assert figures["metrics.recorded"] == 11 and figures["metrics.kept"] == 9  # two settings
    for key in ("seed", "version", "data_sha256"):
        assert figures[key] is not None


def test_larger_doses_are_found_more_surely(labelled):
    for name in ("zscore", "logistic"):
        found = [labelled.figures[f"detect.auprc.{name}.left_node.dose_{level}"] for level in (1, 2, 3)]
        assert found[0] < found[2] and found[2] > 0.6, (name, found)


def test_the_best_node_and_the_intervals_are_told(labelled):
    ranking = labelled.tables["ranking"]
    cpu = ranking[ranking["aspect"] == "cpu"]
    assert cpu["node"].tolist() == ["node-1", "node-2", "node-3"]
    assert labelled.figures["repeatability.cv"] == pytest.approx(0.04, abs=0.01)  # as drawn
    assert labelled.figures["repeatability.rerun_median"] == pytest.approx(0.041 * 0.954, abs=0.01)  # √2 · 0.6745 σ


@pytest.mark.slow
def test_the_same_history_gives_the_same_figures():
    history = synthetic_history(nodes=2, runs=20, types=2)
    assert evaluate_history(history, ONE_SPLIT).figures == evaluate_history(history, ONE_SPLIT).figures


def test_without_labels_detection_is_null_with_its_reason():
    history = synthetic_history(nodes=2, runs=10, types=2)
    labels = pd.array([pd.NA] * len(history.executions), dtype="boolean")
    unlabelled = replace(history, executions=history.executions.assign(is_stressed=labels))
    figures = evaluate_history(unlabelled, QUICK).figures
    assert are_explained(figures)
    assert figures["detect.f1_outlier.zscore"] is None
    assert "is_stressed" in figures["detect.f1_outlier.zscore.reason"]
    assert figures["detect.n"] is None and "is_stressed" in figures["detect.n.reason"]
    assert figures["repeatability.cv"] is not None


def test_one_execution_is_evaluated_without_an_error_and_none_is_one_clear_line():
    figures = evaluate_history(synthetic_history(nodes=1, runs=1, types=1, stressed=0.0), QUICK).figures
    assert are_explained(figures) and figures["n"] == 1
    with pytest.raises(BadInput, match="none has a metric"):
        evaluate_history(synthetic_history(nodes=1, runs=0, types=1), QUICK)


def test_the_hash_of_the_data_follows_all_that_figures_are_made_of():
    history = synthetic_history(nodes=1, runs=2, types=1)
    changes = {"duration_s": 3.0, "status": "failed", "is_contaminated": True, "dose_level": 3, "aspect": "disk"}
    series = pd.DataFrame(
        {"execution": [0], "metric": ["m"], "unit": [""], "at_s": [np.zeros(1)], "samples": [np.ones(1)]}
    )
    others = [replace(history, executions=history.executions.assign(**{key: one})) for key, one in changes.items()]
    others += [replace(history, telemetry=series), replace(history, telemetry=series.assign(samples=[np.zeros(1)]))]
    hashes = [sha256_of_history(one) for one in (history, *others)]
    assert len(set(hashes)) == len(hashes)
    assert sha256_of_history(synthetic_history(nodes=1, runs=2, types=1)) == hashes[0]
