"""A new model comes into use only by executions that neither has learned, and that both can judge."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.learned import promoting

from tasks.nodes import learned_steps
from tasks.nodes.perona.params import TrainParams
from tasks.nodes.perona.trained import (
    Compared,
    Measured,
    compared,
    trained_in_use,
)
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.registry import champion

NOTHING = Measured({}, "error_ratio")


def came_to(before, now, metric="auprc"):
    """A comparison over 72 executions."""
    return Compared(Measured({metric: before}, metric), Measured({metric: now}, metric), 72, True, True)


def in_use(warehouse):
    return champion(warehouse.models, "nodes", "log", "fingerprint").model_id


def test_the_first_figures_of_a_model_are_those_that_decide(trained_log):
    """Errors over all columns, most of which an execution has no value of, stand behind those of its own metrics."""
    names = list(champion(trained_log.models, "nodes", "log", "fingerprint").metrics)
    assert names[0] in ("auprc", "error_ratio")
    assert "mse" not in names[:3] and names.index("mse_own_mean_predictor") < names.index("mse")


def test_a_model_that_is_no_better_on_the_same_executions_is_not_used(trained_log, train, monkeypatch):
    before = in_use(trained_log)
    monkeypatch.setattr(promoting, "compared", lambda *_: came_to(0.9, 0.8))
    found = train(trained_log, run_id="another", seed=5)
    assert found["model_id"] != before
    assert found["champion_id"] == before == in_use(trained_log)


def test_a_better_model_is_used_and_says_what_the_former_one_had(trained_log, train, monkeypatch):
    monkeypatch.setattr(promoting, "compared", lambda *_: came_to(0.8, 0.9))
    found = train(trained_log, run_id="another", seed=5)
    assert found["champion_id"] == found["model_id"] == in_use(trained_log)
    reason = (trained_log.models / "nodes" / "champions.jsonl").read_text().splitlines()[-1]
    assert "had 0.8 on the same 72 executions" in reason


def test_models_are_compared_on_what_the_present_one_has_not_seen(trained_log, quick_model, monkeypatch):
    """The new one is measured on 12 of 20 executions of each of 18 series; the present one knows 8 of these."""
    _, old = trained_in_use(trained_log, "log")
    asked = []

    def comparing(old, new, history, is_asked):
        asked.append(set(history.executions["execution_id"][is_asked]))
        return came_to(0.9, 0.8)

    monkeypatch.setattr(promoting, "compared", comparing)
    shares = TrainParams(train_share=0.3, validation_share=0.1)
    given = (shares, PreprocessParams(), ScoreParams(resamples=100), DetectorParams(trees=10))
    found = learned_steps.train(trained_log, "log", quick_model, *given, "another")
    assert found["n_tested"] == 12 * 18
    [executions] = asked
    assert len(executions) == 4 * 18 and not executions & (old.learned | old.chosen)


def test_without_executions_that_are_new_to_it_the_present_model_stays(trained_log, train, monkeypatch):
    before = in_use(trained_log)
    card, old = trained_in_use(trained_log, "log")
    history, _ = learned_steps.benchmarks_of(trained_log, "log", ScoreParams(resamples=100))
    knows_all = replace(old, chosen=frozenset(history.executions["execution_id"].astype(str)))
    monkeypatch.setattr(promoting, "trained_in_use", lambda *_: (card, knows_all))
    monkeypatch.setattr(promoting, "compared", lambda *_: pytest.fail("compared on what one of them has learned"))
    assert train(trained_log, run_id="another", seed=5)["champion_id"] == before


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (came_to(0.8, 0.9), True),
        (came_to(0.8, 0.8), False),
        (came_to(0.8, 0.9, "error_ratio"), False),
        (Compared(NOTHING, NOTHING, 0, can_old=False, can_new=True), True),
        (Compared(NOTHING, NOTHING, 0, can_old=True, can_new=True), False),
        (Compared(NOTHING, NOTHING, 0, can_old=False, can_new=False), False),
        (Compared(NOTHING, Measured({"error_ratio": 0.5}, "error_ratio"), 3, can_old=True, can_new=True), True),
    ],
)
def test_which_of_two_is_better(found, expected):
    assert found.is_better is expected


def test_executions_that_one_of_them_cannot_judge_decide_nothing(monkeypatch):
    """Of three that are asked about, the old one says nothing of the first, the new one nothing of the last."""
    logits = {"old": [np.nan, 1.0, 1.0, 1.0], "new": [1.0, 1.0, np.nan, 1.0]}
    seen = []

    def asking(_, model):
        judged = SimpleNamespace(logit=np.array(logits[model.name]))
        return SimpleNamespace(inputs=None, judged=judged, labels=None, is_learned=None)

    def measuring(*given):
        seen.append(given[-1].tolist())
        return Measured({"auprc": 0.5}, "auprc")

    monkeypatch.setattr(promoting, "ask", asking)
    monkeypatch.setattr(promoting, "measure", measuring)
    old, new = (SimpleNamespace(name=name, fitted=SimpleNamespace(network=None)) for name in ("old", "new"))
    found = compared(old, new, None, np.array([True, True, True, False]))
    assert seen == [[False, True, False, False]] * 2
    assert (found.n, found.can_old, found.can_new, found.is_better) == (1, True, True, False)


def test_a_model_is_as_good_as_itself(trained_log):
    _, model = trained_in_use(trained_log, "log")
    history, _ = learned_steps.benchmarks_of(trained_log, "log", ScoreParams(resamples=100))
    is_left = ~history.executions["execution_id"].isin(model.learned | model.chosen).to_numpy(dtype=bool)
    found = compared(model, model, history, is_left)
    assert found.n == 72 and found.now.metric == "auprc" and not found.is_better
    assert found.now.figures == found.before.figures
