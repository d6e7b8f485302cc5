"""What a model says in use is what it said when it was trained."""

import numpy as np
import pytest
from tasks.nodes.learned import training

from tasks.nodes import learned_steps
from tasks.nodes.perona.params import AskingParams
from tasks.nodes.perona.trained import ask, fingerprint, trained_in_use
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.connection import transaction, writing

QUICK = ScoreParams(resamples=100)


@pytest.fixture
def unlabelled_log(nodes_log):
    """The source `log`, of which nobody says what was stressed."""
    with writing(nodes_log) as connection, transaction(connection):
        connection.execute("UPDATE nodes.executions SET is_stressed = NULL")
    return nodes_log


def test_a_model_gives_the_verdicts_of_its_training(nodes_log, train, monkeypatch):
    seen = {}
    judge = training.judge

    def spied(inputs, *given, **named):
        seen.update(judged=judge(inputs, *given, **named))
        return seen["judged"]

    monkeypatch.setattr(training, "judge", spied)
    train(nodes_log)
    _, model = trained_in_use(nodes_log, "log")
    history, _ = learned_steps.benchmarks_of(nodes_log, "log", QUICK)
    found = ask(history, model)
    np.testing.assert_allclose(found.judged.logit, seen["judged"].logit, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found.judged.is_flagged, seen["judged"].is_flagged)


def test_a_model_of_a_source_that_knows_of_no_stress_has_fingerprints_and_flags_nothing(unlabelled_log, train):
    found = train(unlabelled_log)
    assert found["metric"] == "error_ratio"
    _, model = trained_in_use(unlabelled_log, "log")
    history, _ = learned_steps.benchmarks_of(unlabelled_log, "log", QUICK)
    told = fingerprint(history, model, AskingParams(), QUICK)
    assert len(told.executions) == len(history.executions)
    assert told.executions["probability"].isna().all() and not told.executions["is_flagged"].any()
    assert np.isfinite(told.executions["score"]).all() and told.reasons.empty
