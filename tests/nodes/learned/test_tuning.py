"""The search of a source: on what models learn and choose by, and from where it stopped."""

import pandas as pd
import pytest
from tasks.nodes.detectors.params import DetectorParams

from tasks.errors import BadInput
from tasks.nodes import learned_steps
from tasks.nodes.perona import search as search_here
from tasks.nodes.perona.params import (
    FitParams,
    GraphParams,
    ModelParams,
    NetworkParams,
    SearchParams,
    TrainParams,
)
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.connection import transaction, writing

MODEL = ModelParams(
    graph=GraphParams(node_metrics=False),
    network=NetworkParams(hidden=8, intermediate=8, heads=1),
    fit=FitParams(epochs=2, batch_size=64),
)
QUICK = ScoreParams(resamples=100)


def tuned(warehouse, n_trials=5):
    search = SearchParams(runner="here", n_trials=n_trials, warm_up_trials=2, grace_epochs=1)
    given = (TrainParams(), PreprocessParams(), QUICK, DetectorParams(trees=10))
    return learned_steps.tune(warehouse, "log", MODEL, *given, search)


@pytest.fixture
def trials(monkeypatch):
    """Trials that are worked out, not fitted, three heads being best: the graphs and parameters that each was given."""
    seen = []

    def loss(train, validation, params, report):
        seen.append((train, validation, params))
        report(1, abs(params.network.heads - 3) + params.network.dropout)
        return abs(params.network.heads - 3) + params.network.dropout

    monkeypatch.setattr(search_here, "trial_loss", loss)
    return seen


def test_a_search_that_was_stopped_goes_on_and_finished_trials_are_not_repeated(nodes_log, trials, monkeypatch):
    own = search_here.trial_loss

    def stopping(*given):
        if len(trials) == 2:
            raise KeyboardInterrupt
        return own(*given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(search_here, "trial_loss", stopping)
        tuned(nodes_log)
    found = tuned(nodes_log)
    assert (found["n_trials"], found["n_resumed"], len(trials)) == (5, 2, 5)


def test_a_finished_search_is_read_again_without_a_fit(nodes_log, trials):
    first, second = tuned(nodes_log), tuned(nodes_log)
    assert len(trials) == 5 and second["n_resumed"] == 5
    assert second["best"] == first["best"] and second["validation_loss"] == first["validation_loss"]
    table = pd.read_parquet(first["trials"])
    assert len(table) == 5 and table["validation_loss"].min() == first["validation_loss"]
    assert tuned(nodes_log, n_trials=6)["n_resumed"] == 5 and len(trials) == 6


def test_the_best_parameters_are_those_of_a_model(nodes_log, trials):
    found = tuned(nodes_log)
    best = ModelParams.model_validate(found["best"])
    assert best in [params for _, _, params in trials]
    assert best.fit.epochs == MODEL.fit.epochs and best.network.hidden == MODEL.network.hidden


def test_the_latest_executions_have_no_part_in_a_search(nodes_log, trials):
    """Of 20 executions of each node and benchmark 12 are learned and the next 4 chosen by."""
    tuned(nodes_log, n_trials=1)
    history, _ = learned_steps.benchmarks_of(nodes_log, "log", QUICK)
    place = history.executions.groupby(["node", "benchmark"]).cumcount().to_numpy()
    [(train, validation, _)] = trials
    assert set(place[train.targets]) == set(range(12))
    assert set(place[validation.targets]) == {12, 13, 14, 15}
    for graphs in (train, validation):
        beside = graphs.predecessors[graphs.predecessors >= 0]
        assert place[beside].max() < 16


def test_too_few_executions_to_search_on_are_one_line(nodes_log, trials):
    with writing(nodes_log) as connection, transaction(connection):
        connection.execute(
            "DELETE FROM nodes.executions WHERE source = 'log' AND execution_id NOT IN "
            "(SELECT min(execution_id) FROM nodes.executions GROUP BY node, benchmark)"
        )
    with pytest.raises(BadInput, match="none is left to"):
        tuned(nodes_log)
    assert trials == []
