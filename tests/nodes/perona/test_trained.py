"""A network of a source: trained once, kept if it is better, searched, and asked."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.nodes import network_steps
from tasks.nodes.history import benchmarks_of
from tasks.nodes.perona import search as search_here
from tasks.nodes.perona import trained
from tasks.nodes.perona.params import FitParams, GraphParams, ModelParams, NetworkParams, SearchParams, TrainParams
from tasks.nodes.perona.trained import (
    Compared,
    Measured,
    Training,
    ask,
    compared,
    fingerprint,
    is_better,
    trained_in_use,
    training_key,
)
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.new_card import new_card
from tasks.warehouse.registry import NOTE_FILE, champion, promote, register

QUICK = ScoreParams(resamples=100)


@pytest.fixture
def unlabelled_log(nodes_log):
    """The source `log`, of which nobody says what was stressed."""
    with writing(nodes_log) as connection, transaction(connection):
        connection.execute("UPDATE nodes.executions SET is_stressed = NULL")
    return nodes_log


def test_a_model_gives_the_verdicts_of_its_training(nodes_log, train, monkeypatch):
    seen = {}
    judge = trained.judge

    def spied(inputs, *given, **named):
        seen.update(judged=judge(inputs, *given, **named))
        return seen["judged"]

    monkeypatch.setattr(trained, "judge", spied)
    train(nodes_log)
    _, model = trained_in_use(nodes_log, "log")
    history, _ = benchmarks_of(nodes_log, "log", QUICK)
    found = ask(history, model)
    np.testing.assert_allclose(found.judged.logit, seen["judged"].logit, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found.judged.is_flagged, seen["judged"].is_flagged)


def test_a_model_of_a_source_that_knows_of_no_stress_has_fingerprints(unlabelled_log, train):
    found = train(unlabelled_log)
    assert found["metric"] == "error_ratio"
    _, model = trained_in_use(unlabelled_log, "log")
    history, _ = benchmarks_of(unlabelled_log, "log", QUICK)
    told = fingerprint(history, model, np.zeros(len(history.executions), dtype=bool), QUICK)
    assert len(told.executions) == len(history.executions)
    assert np.isfinite(told.executions["score"]).all()


@pytest.mark.parametrize(
    ("new", "old", "direction", "expected"),
    [
        (0.9, 0.8, "higher", True),
        (0.8, 0.9, "higher", False),
        (0.8, 0.8, "higher", False),
        (0.8, 0.9, "lower", True),
        (0.9, 0.8, "lower", False),
        (None, 0.8, "higher", False),
        (float("nan"), None, "higher", False),
        (0.1, None, "higher", True),
        (0.1, float("nan"), "lower", True),
    ],
)
def test_a_model_is_better_only_by_a_known_figure(new, old, direction, expected):
    assert is_better(new, old, direction) is expected


def test_errors_are_better_small_and_precision_large():
    assert Measured({}, "auprc").direction == "higher"
    assert Measured({}, "error_ratio").direction == "lower"


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
    monkeypatch.setattr(trained, "compared", lambda *_: came_to(0.9, 0.8))
    found = train(trained_log, run_id="another", seed=5)
    assert found["model_id"] != before
    assert found["champion_id"] == before == in_use(trained_log)


def test_a_better_model_is_used_and_says_what_the_former_one_had(trained_log, train, monkeypatch):
    monkeypatch.setattr(trained, "compared", lambda *_: came_to(0.8, 0.9))
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

    monkeypatch.setattr(trained, "compared", comparing)
    shares = TrainParams(train_share=0.3, validation_share=0.1)
    given = (shares, PreprocessParams(), ScoreParams(resamples=100))
    found = network_steps.train(trained_log, "log", quick_model, *given, "another")
    assert found["n_tested"] == 12 * 18
    [executions] = asked
    assert len(executions) == 4 * 18 and not executions & (old.learned | old.chosen)


def test_without_executions_that_are_new_to_it_the_present_model_stays(trained_log, train, monkeypatch):
    before = in_use(trained_log)
    card, old = trained_in_use(trained_log, "log")
    history, _ = benchmarks_of(trained_log, "log", ScoreParams(resamples=100))
    knows_all = replace(old, chosen=frozenset(history.executions["execution_id"].astype(str)))
    monkeypatch.setattr(trained, "trained_in_use", lambda *_: (card, knows_all))
    monkeypatch.setattr(trained, "compared", lambda *_: pytest.fail("compared on what one of them has learned"))
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

    monkeypatch.setattr(trained, "ask", asking)
    monkeypatch.setattr(trained, "can_be_judged", lambda _: np.ones(4, dtype=bool))
    monkeypatch.setattr(trained, "measure", measuring)
    old, new = (SimpleNamespace(name=name, fitted=SimpleNamespace(network=None)) for name in ("old", "new"))
    found = compared(old, new, None, np.array([True, True, True, False]))
    assert seen == [[False, True, False, False]] * 2
    assert (found.n, found.can_old, found.can_new, found.is_better) == (1, True, True, False)


def test_a_model_is_as_good_as_itself(trained_log):
    _, model = trained_in_use(trained_log, "log")
    history, _ = benchmarks_of(trained_log, "log", ScoreParams(resamples=100))
    is_left = ~history.executions["execution_id"].isin(model.learned | model.chosen).to_numpy(dtype=bool)
    found = compared(model, model, history, is_left)
    assert found.n == 72 and found.now.metric == "auprc" and not found.is_better
    assert found.now.figures == found.before.figures


ASKED = {
    "model": ModelParams(),
    "train": TrainParams(),
    "preprocess": PreprocessParams(),
    "score": ScoreParams(),
}


@pytest.fixture
def made(monkeypatch):
    """The models of trainings that learn nothing, but register a model and use the first one."""
    models = []

    def train_source(warehouse, source, history, version, params, *, run_id):
        card = new_card(
            word="nodes",
            source=source,
            kind="fingerprint",
            run_id=run_id,
            data_version=version,
            seed=0,
            parameters={},
            figures={},
            identity=run_id,
        )
        models.append(register(warehouse, card, lambda folder: None))
        if champion(warehouse.models, "nodes", source, "fingerprint") is None:
            promote(warehouse, "nodes", card.model_id, "the first")
        return Training(card.model_id, in_use(warehouse), Measured({"auprc": 0.5}, "auprc"), 3, 1)

    monkeypatch.setattr("tasks.nodes.perona.trained.train_source", train_source)
    monkeypatch.setattr("tasks.nodes.perona.trained.load_trained", lambda folder: None)
    return models


def train(warehouse, run_id, *, again=False, **changed):
    return network_steps.train(warehouse, "log", **(ASKED | changed), run_id=run_id, again=again)


def test_the_same_training_in_another_run_gives_what_the_first_came_to(nodes_log, made):
    first = train(nodes_log, "one")
    second = train(nodes_log, "other")
    assert made == [first["model_id"]]
    assert (first["is_from_before"], second["is_from_before"]) == (False, True)
    assert {**second, "is_from_before": False} == first
    assert (second["metric"], second["figures"], second["n_learned"], second["n_tested"]) == (
        "auprc",
        {"auprc": 0.5},
        3,
        1,
    )


def test_one_that_is_asked_for_again_is_trained_again(nodes_log, made):
    train(nodes_log, "one")
    assert not train(nodes_log, "other", again=True)["is_from_before"]
    assert len(set(made)) == 2
    assert train(nodes_log, "third")["model_id"] == in_use(nodes_log) == made[0]  # of two the one in use


@pytest.mark.parametrize(
    "changed",
    [
        {"model": ModelParams(fit=FitParams(seed=1))},
        {"train": TrainParams(most_graphs=100)},
        {"preprocess": PreprocessParams(variant="paper")},
        {"score": ScoreParams(resamples=100)},
    ],
)
def test_other_parameters_are_learned_anew(nodes_log, made, changed):
    train(nodes_log, "one")
    assert not train(nodes_log, "other", **changed)["is_from_before"]


def test_other_data_are_learned_anew(nodes_log, made):
    train(nodes_log, "one")
    with writing(nodes_log) as connection, transaction(connection):
        connection.execute("UPDATE ops.files SET ordered_at = ordered_at + INTERVAL 1 DAY, batch_id = 'another'")
    assert not train(nodes_log, "other")["is_from_before"]


def test_other_code_learns_anew(nodes_log, made, monkeypatch):
    train(nodes_log, "one")
    monkeypatch.setattr("tasks.nodes.perona.trained.code_version", lambda: "9.9")
    assert not train(nodes_log, "other")["is_from_before"]


def test_another_source_of_the_same_version_is_another_training():
    assert training_key("log", "v", ModelParams()) != training_key("lab", "v", ModelParams())


def test_a_model_in_use_that_cannot_be_read_is_mended_by_a_training(nodes_log, made, monkeypatch):
    train(nodes_log, "one")

    def broken(folder):
        raise BadInput(folder, "no model of nodes", "one")

    monkeypatch.setattr("tasks.nodes.perona.trained.load_trained", broken)
    assert not train(nodes_log, "other")["is_from_before"]


def test_what_was_stopped_before_it_was_decided_is_trained_again(nodes_log, made):
    """Nothing is kept before the model is in use, or found to be no better."""
    first = train(nodes_log, "one")
    file = nodes_log.models / "nodes" / first["model_id"] / NOTE_FILE
    file.rename(file.with_suffix(".part"))  # as a kill in the middle of writing leaves it
    assert not train(nodes_log, "other")["is_from_before"]
    file.write_text('{"key": ')
    assert train(nodes_log, "third")["model_id"] == made[1]


def test_a_model_that_another_one_has_replaced_is_not_used_again(nodes_log, made):
    first = train(nodes_log, "one")
    train(nodes_log, "better", model=ModelParams(fit=FitParams(seed=1)))
    promote(nodes_log, "nodes", made[1], "better")
    found = train(nodes_log, "other")
    assert (found["model_id"], found["champion_id"], found["is_from_before"]) == (first["model_id"], made[1], True)
    assert in_use(nodes_log) == made[1]
    shutil.rmtree(nodes_log.models / "nodes" / first["model_id"])  # pruned
    assert not train(nodes_log, "third")["is_from_before"]


MODEL = ModelParams(
    graph=GraphParams(node_metrics=False),
    network=NetworkParams(hidden=8, intermediate=8, heads=1),
    fit=FitParams(epochs=2, batch_size=64),
)


def tuned(warehouse, n_trials=5):
    search = SearchParams(runner="here", n_trials=n_trials, warm_up_trials=2, grace_epochs=1)
    given = (TrainParams(), PreprocessParams(), QUICK)
    return network_steps.tune(warehouse, "log", MODEL, *given, search)


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
    history, _ = benchmarks_of(nodes_log, "log", QUICK)
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
