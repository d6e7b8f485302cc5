"""An evaluation in which labels only measure: nothing that learns or chooses may change with them."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.detect.contenders import DETECTORS
from tasks.nodes.evaluate import network_detection
from tasks.nodes.evaluate.detection import detect
from tasks.nodes.evaluate.network_detection import detect_learned
from tasks.nodes.evaluate.splits import as_told

FOUND = ["protocol", "round", "split", "detector", "execution", "score", "threshold", "is_flagged"]


def turned(history):
    """The history in which what was stressed was not, and the other way round."""
    stressed = history.executions["is_stressed"].astype(bool)
    return replace(history, executions=history.executions.assign(is_stressed=~stressed))


@pytest.fixture
def hidden(asked):
    """Parameters without labels, for splits by time."""
    return asked(protocols=("chronological",), seeds=1).model_copy(update={"without_labels": True})


def by_time(judged):
    return judged.loc[judged["protocol"] == "chronological", FOUND].reset_index(drop=True)


def test_plain_detectors_say_the_same_whatever_the_labels_are(history, prepare, hidden):
    one, other = (detect(given, prepare, DETECTORS, hidden).judged for given in (history, turned(history)))
    assert len(by_time(one)) and by_time(one).equals(by_time(other))
    open_ = hidden.model_copy(update={"without_labels": False})
    assert not by_time(detect(history, prepare, DETECTORS, open_).judged).equals(by_time(one))


def test_the_model_says_the_same_whatever_the_labels_are_and_is_measured_by_them(history, prepare, hidden):
    one, other = (detect_learned(given, prepare, hidden).judged for given in (history, turned(history)))
    assert len(one) and by_time(one).equals(by_time(other))
    assert np.isfinite(one["threshold"]).all() and np.ptp(one["score"]) > 0


def test_the_papers_variant_says_why_it_has_no_figures(history, prepare, hidden):
    papers = hidden.model_copy(update={"learned": hidden.learned.model_copy(update={"variants": ("paper",)})})
    found = detect_learned(history, prepare, papers)
    assert found.judged.empty
    assert "known to be stressed" in found.reasons["chronological", "paper"]


def test_graphs_that_are_made_by_labels_cannot_be_had(history, prepare, hidden):
    asked = hidden.model_copy(update={"learned": hidden.learned.model_copy(update={"protocols": ("paper",)})})
    found = detect_learned(history, prepare, asked)
    assert found.judged.empty and found.fits.empty
    assert found.reasons == {("paper", "model"): "the paper's protocol makes its graphs by labels, which are hidden"}


def test_what_is_fitted_for_the_ablation_is_the_same_whatever_the_labels_are(history, prepare, hidden, monkeypatch):
    monkeypatch.setattr(network_detection, "TERMS", ())
    params = hidden.model_copy(update={"learned": hidden.learned.model_copy(update={"ablation_seeds": 1})})
    one, other = (network_detection.ablate(given, prepare, params).rows for given in (history, turned(history)))
    assert len(one) == 1 and one["mse_own"].equals(other["mse_own"])
    assert not one["auprc"].equals(other["auprc"])  # labels measure


def test_everything_is_told_unless_it_is_to_be_hidden(history, hidden):
    assert as_told(history, hidden.model_copy(update={"without_labels": False})) is history
    assert as_told(history, hidden).executions["is_stressed"].isna().all()
    assert history.executions["is_stressed"].notna().all()
