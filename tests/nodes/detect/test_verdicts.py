"""Verdicts on a source: learned with a threshold, kept as a model, and given with their reasons."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.nodes.detect.params import AlarmParams, BudgetParams, DetectorParams
from tasks.nodes.detect.verdicts import judge_history, learn_verdicts, load_verdict_model, save_verdict_model
from tasks.nodes.preprocess.params import PreprocessParams
from tests.nodes.synthetic import synthetic_history


def learned(history, **budget):
    given = (PreprocessParams(), DetectorParams(), BudgetParams(**budget), AlarmParams())
    return learn_verdicts(history, *given)


@pytest.fixture(scope="module")
def history():
    return synthetic_history(nodes=3, types=2, runs=80, stressed=0.2)


@pytest.fixture(scope="module")
def model(history):
    return learned(history).model


def test_figures_are_of_executions_that_the_others_judge(history):
    found = learned(history)
    assert (found.n_learned, found.n_stressed) == (480, 96)
    assert set(found.figures) == {"auprc", "f1_outlier", "precision", "recall", "false_alarms_per_1000"}
    assert 0.5 < found.figures["auprc"] < 1.0  # a third of the doses is one deviation


def test_without_known_stress_there_are_verdicts_and_no_figures(history):
    unknown = history.executions.assign(is_stressed=None, dose_level=np.nan)
    found = learned(type(history)(unknown, history.metrics, history.telemetry))
    assert found.figures == {} and found.n_stressed == 0
    verdicts = judge_history(history, found.model).executions
    assert not verdicts["by_labels"].any() and verdicts["probability"].between(0, 1).all()
    strong = (history.executions["dose_level"] == 3).to_numpy()
    assert verdicts["probability"][strong].median() > 0.9 > 0.1 > verdicts["probability"][~strong].median()


@pytest.mark.parametrize(("by", "name"), [("precision", "precision"), ("recall", "recall")])
def test_a_precision_or_a_recall_that_is_asked_for_is_had(history, by, name):
    found = learned(history, by=by, share=0.8)
    assert found.figures[name] >= 0.8 - 1e-9 and found.model.budget is None


def test_a_recall_without_known_stress_is_refused(history):
    calm = history.where((history.executions["dose_level"] == 0).to_numpy())
    with pytest.raises(BadInput, match=r"nodes\.budget\.by: no execution is known to be stressed.*choose by alarms"):
        learned(calm, by="recall")


def test_too_few_executions_are_one_line(history):
    with pytest.raises(BadInput, match="no benchmark has five calm ones"):
        learned(history.where(np.arange(480) < 6))


def test_flagged_executions_have_reasons_and_others_have_none(history, model):
    found = judge_history(history, model)
    flagged = found.executions[found.executions["is_flagged"]]
    assert set(found.reasons["execution_id"]) <= set(flagged["execution_id"])
    strong = set(history.executions["execution_id"][history.executions["dose_level"] == 3])
    assert strong & set(flagged["execution_id"]) <= set(found.reasons["execution_id"])
    assert (found.reasons["deviation"] >= 2).all() and not found.reasons["metric"].str.contains("threads").any()


def test_a_saved_model_gives_the_same_verdicts_to_the_bit(history, model, tmp_path):
    save_verdict_model(model, tmp_path)
    again = load_verdict_model(tmp_path)
    assert (again.threshold, again.budget) == (model.threshold, model.budget)
    one, other = judge_history(history, model), judge_history(history, again)
    pd.testing.assert_frame_equal(one.executions, other.executions, check_exact=True)
    pd.testing.assert_frame_equal(one.reasons, other.reasons, check_exact=True)


@pytest.mark.parametrize("name", ["budget.json", "detector.json", "detector.npz", "preprocessor.json"])
@pytest.mark.parametrize(
    "content", [None, b"", b"{}", b"[1]", b"\x00 no model", b'{"types": [{"name": 3}]}', b"PK\x03\x04cut off"]
)
def test_a_broken_folder_is_refused_with_one_line(model, tmp_path, name, content):
    save_verdict_model(model, tmp_path)
    file = tmp_path / name
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        load_verdict_model(tmp_path)
    assert str(tmp_path) in str(refused.value) and "\n" not in str(refused.value)
