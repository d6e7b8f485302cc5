"""A network of a source: trained once, kept if it is better, searched, and asked."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.nodes import network_steps
from tasks.nodes.history import benchmarks_of
from tasks.nodes.perona import search as search_here
from tasks.nodes.perona import trained
from tasks.nodes.perona.params import FitParams, ModelParams, NetworkParams, SearchParams, TrainParams
from tasks.nodes.perona.trained import METRIC, figures_of, fingerprint, promote_if_better, trained_in_use
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.registry import champion

QUICK = ScoreParams(resamples=100)


def in_use(warehouse):
    return champion(warehouse.models, "nodes", "log", "fingerprint")


def ratios(monkeypatch, old, new):
    """The error ratios that the present model and the new one come to on the same executions, whichever they are; what
    was asked about is kept."""
    asked, values = [], iter((old, new, old, new))

    def told(model, history, is_asked):
        asked.append(is_asked)
        return {METRIC: value} if (value := next(values)) is not None else {}

    monkeypatch.setattr(trained, "figures_of", told)
    return asked


def offered(warehouse, old=None):
    """The model in use offered once more under another name: the id that is in use then, and what it was tested on."""
    card, model = trained_in_use(warehouse, "log")
    history, _ = benchmarks_of(warehouse, "log", QUICK)
    is_tested = ~history.executions["execution_id"].isin(model.learned | model.chosen).to_numpy(dtype=bool)
    other = card.model_copy(update={"model_id": "another"})
    return promote_if_better(warehouse, other, model, history, is_tested), is_tested


def test_a_model_of_a_source_that_knows_of_no_stress_has_fingerprints(nodes_log, train):
    with writing(nodes_log) as connection, transaction(connection):
        connection.execute("UPDATE nodes.executions SET is_stressed = NULL")
    found = train(nodes_log)
    assert found["metric"] == "error_ratio" and found["champion_id"] == found["model_id"]
    _, model = trained_in_use(nodes_log, "log")
    history, _ = benchmarks_of(nodes_log, "log", QUICK)
    told = fingerprint(history, model, np.zeros(len(history.executions), dtype=bool), QUICK)
    assert len(told.executions) == len(history.executions) and np.isfinite(told.executions["score"]).all()


def test_the_first_figures_of_a_model_are_those_that_decide(trained_log):
    """Errors over all columns, most of which an execution has no value of, stand behind the share of own metrics."""
    assert next(iter(in_use(trained_log).metrics)) == METRIC


@pytest.mark.parametrize(
    ("old", "new", "is_used"), [(0.9, 0.8, True), (0.8, 0.8, False), (0.8, None, False), (None, 0.9, True)]
)
def test_the_model_with_the_smaller_error_on_the_same_executions_is_used(trained_log, monkeypatch, old, new, is_used):
    before = in_use(trained_log).model_id
    asked = ratios(monkeypatch, old, new)
    monkeypatch.setattr(trained, "promote", lambda warehouse, word, model_id, reason: reasons.append(reason))
    reasons = []
    now, is_tested = offered(trained_log)
    assert (now == "another") == is_used == bool(reasons) and (is_used or now == before)
    assert all(np.array_equal(one, is_tested) for one in asked)
    assert not is_used or old is None or "had 0.9 on the same 72 executions" in reasons[0]


def test_models_are_compared_on_what_the_present_one_has_not_seen(trained_log, monkeypatch):
    card, old = trained_in_use(trained_log, "log")
    history, _ = benchmarks_of(trained_log, "log", QUICK)
    asked, another = ratios(monkeypatch, 0.9, 0.95), card.model_copy(update={"model_id": "another"})
    everything = np.ones(len(history.executions), dtype=bool)
    assert promote_if_better(trained_log, another, old, history, everything) == card.model_id
    seen = set(history.executions["execution_id"][asked[0]])
    assert len(seen) == 72 and not seen & (old.learned | old.chosen)
    knows_all = replace(old, chosen=frozenset(history.executions["execution_id"].astype(str)))
    monkeypatch.setattr(trained, "trained_in_use", lambda *_: (card, knows_all))
    assert promote_if_better(trained_log, another, old, history, everything) == card.model_id


def test_a_model_is_as_good_as_itself(trained_log):
    card, model = trained_in_use(trained_log, "log")
    assert offered(trained_log)[0] == card.model_id
    history, _ = benchmarks_of(trained_log, "log", QUICK)
    is_left = ~history.executions["execution_id"].isin(model.learned | model.chosen).to_numpy(dtype=bool)
    assert figures_of(model, history, is_left)[METRIC] == pytest.approx(card.metrics[METRIC], rel=1e-4)


ASKED = {"train": TrainParams(), "preprocess": PreprocessParams(), "score": QUICK}


def trained_again(warehouse, quick_model, run_id="other", *, again=False, **changed):
    return network_steps.train(
        warehouse, "log", **({"model": quick_model} | ASKED | changed), run_id=run_id, again=again
    )


def test_the_same_training_in_another_run_gives_what_the_first_came_to(nodes_log, quick_model):
    first = trained_again(nodes_log, quick_model, "one")
    second = trained_again(nodes_log, quick_model)
    assert (first["is_from_before"], second["is_from_before"]) == (False, True)
    assert {**second, "is_from_before": False} == first
    assert not trained_again(nodes_log, quick_model, "third", again=True)["is_from_before"]


@pytest.mark.parametrize(
    "changed",
    [
        {"train": TrainParams(most_graphs=100)},
        {"preprocess": PreprocessParams(variant="paper")},
        "model",
        "data",
        "code",
    ],
    ids=["executions", "preprocessing", "model", "data", "code"],
)
def test_what_is_not_the_same_is_learned_anew(trained_log, quick_model, monkeypatch, changed):
    given = changed if isinstance(changed, dict) else {}
    if changed == "model":
        given = {"model": quick_model.model_copy(update={"fit": FitParams(epochs=1, seed=1)})}
    if changed == "data":
        with writing(trained_log) as connection, transaction(connection):
            connection.execute("UPDATE ops.files SET ordered_at = ordered_at + INTERVAL 1 DAY, batch_id = 'another'")
    if changed == "code":
        monkeypatch.setattr(network_steps, "code_version", lambda: "9.9")
    assert not trained_again(trained_log, quick_model, **given)["is_from_before"]


def test_a_model_in_use_that_cannot_be_read_is_mended_by_a_training(trained_log, quick_model):
    present = in_use(trained_log).model_id
    (trained_log.models / "nodes" / present / "network.json").write_text("{")
    found = trained_again(trained_log, quick_model)
    assert not found["is_from_before"] and found["champion_id"] == found["model_id"] != present


MODEL = ModelParams(
    network=NetworkParams(hidden=8, intermediate=8, heads=1),
    fit=FitParams(epochs=2, batch_size=64),
)


def tuned(warehouse, n_trials=5):
    search = SearchParams(runner="here", n_trials=n_trials, warm_up_trials=2, grace_epochs=1)
    given = (TrainParams(), PreprocessParams(), QUICK)
    return network_steps.tune(warehouse, "log", MODEL, *given, search)


@pytest.fixture
def trials(monkeypatch):
    """Trials that are worked out, not fitted, little dropout being best: what each was given."""
    seen = []

    def loss(train, validation, params, report):
        seen.append((train, validation, params))
        report(1, params.network.dropout)
        return params.network.dropout

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
    history, _ = benchmarks_of(nodes_log, "log", QUICK)
    place = history.executions.groupby(["node", "benchmark"]).cumcount().to_numpy()
    [(train, validation, _)] = trials
    assert set(place[train.targets]) == set(range(12))
    assert set(place[validation.targets]) == {12, 13, 14, 15}


def test_too_few_executions_to_search_on_are_one_line(nodes_log, trials):
    with writing(nodes_log) as connection, transaction(connection):
        connection.execute(
            "DELETE FROM nodes.executions WHERE source = 'log' AND execution_id NOT IN "
            "(SELECT min(execution_id) FROM nodes.executions GROUP BY node, benchmark)"
        )
    with pytest.raises(BadInput, match="none is left to"):
        tuned(nodes_log)
    assert trials == []
