"""What a model says in use is what it said when it was trained."""

import json

import numpy as np
import pytest

from tasks.nodes import learned_steps
from tasks.nodes.learned import training
from tasks.nodes.learned.asking import ask
from tasks.nodes.learned.champions import load_trained, trained_in_use
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.connection import transaction, writing

QUICK = ScoreParams(resamples=100)


@pytest.fixture
def unlabelled_log(nodes_log):
    """The source `log`, of which nobody says what was stressed."""
    with writing(nodes_log) as connection, transaction(connection):
        connection.execute("UPDATE nodes.executions SET is_stressed = NULL")
    return nodes_log


def test_a_model_that_was_taught_by_imitated_stress_gives_the_verdicts_of_its_training(
    unlabelled_log, train, monkeypatch
):
    """The trees behind the evidence learn again in use: from the very same imitations."""
    seen = {}
    judge = training.judge

    def spied(inputs, *given, **named):
        seen.update(inputs=inputs, judged=judge(inputs, *given, **named))
        return seen["judged"]

    monkeypatch.setattr(training, "judge", spied)
    train(unlabelled_log)
    _, model = trained_in_use(unlabelled_log, "log")
    assert model.frozen.is_imitated and model.fitted.is_imitated
    history, _ = learned_steps.benchmarks_of(unlabelled_log, "log", QUICK)
    found = ask(history, model)
    assert found.inputs.evidence.shape[1] > 0
    np.testing.assert_array_equal(found.inputs.evidence, seen["inputs"].evidence)
    np.testing.assert_allclose(found.judged.logit, seen["judged"].logit, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found.judged.is_flagged, seen["judged"].is_flagged)


def test_a_model_that_was_saved_before_stress_was_imitated_learned_from_labels(trained_log):
    card, _ = trained_in_use(trained_log, "log")
    folder = trained_log.models / "nodes" / card.model_id
    content = json.loads((folder / "fingerprint.json").read_text())
    assert content.pop("is_imitated") is False
    (folder / "fingerprint.json").write_text(json.dumps(content))
    old = load_trained(folder)
    assert not old.fitted.is_imitated
    history, _ = learned_steps.benchmarks_of(trained_log, "log", QUICK)
    assert np.isfinite(ask(history, old).judged.logit).all()
