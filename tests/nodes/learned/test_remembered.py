"""The same training a second time: nothing is learned, and anything that is not the same is."""

import shutil

import pytest
from tasks.nodes.detectors.params import DetectorParams

from tasks.errors import BadInput
from tasks.nodes import learned_steps
from tasks.nodes.perona.params import (
    FitParams,
    ModelParams,
    TrainParams,
)
from tasks.nodes.perona.trained import Measured, Training, training_key
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.new_card import new_card
from tasks.warehouse.registry import NOTE_FILE, champion, promote, register

ASKED = {
    "model": ModelParams(),
    "train": TrainParams(),
    "preprocess": PreprocessParams(),
    "score": ScoreParams(),
    "detect": DetectorParams(),
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


def in_use(warehouse):
    return champion(warehouse.models, "nodes", "log", "fingerprint").model_id


def train(warehouse, run_id, *, again=False, **changed):
    return learned_steps.train(warehouse, "log", **(ASKED | changed), run_id=run_id, again=again)


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
        {"detect": DetectorParams(trees=10)},
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
