"""The model of the demo: trained in seconds, and used again for the same data and parameters."""

import shutil
from pathlib import Path

import pytest

from flows.node_model_demo import MOST_EPOCHS, MOST_TREES, is_trained, quick, quick_detection
from flows.node_model_params import NodeTrainParams, filled_in
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.learned.train_params import TrainParams
from tasks.nodes.model.params import FitParams, ModelParams
from tasks.nodes.params import NodesParams
from tasks.warehouse.new_card import new_card
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import promote, register


@pytest.fixture
def empty(tmp_path: Path, migrated: Path) -> Warehouse:
    """A warehouse without rows and models."""
    warehouse = Warehouse(home=tmp_path / "home", memory_mb=256, threads=1)
    warehouse.home.mkdir()
    shutil.copy(migrated, warehouse.file)
    return warehouse


def asked(warehouse: Warehouse, source: str = "log", **changed: object) -> NodeTrainParams:
    nodes = NodesParams().model_copy(update=changed)
    return filled_in(NodeTrainParams, nodes, warehouse, source, model=quick(nodes.model), as_in_use=False)


def made(learning: NodeTrainParams, data_version: str) -> str:
    """A model as a training registers it, without its weights."""
    given = {name: getattr(learning, name) for name in ("preprocess", "score", "detect")}
    params = EvaluateParams(**given, **learning.train.model_dump(exclude={"most_graphs"}))
    parameters = params.model_dump(mode="json", exclude={"learned"})
    card = new_card(
        word="nodes",
        source=learning.source,
        kind="fingerprint",
        run_id="run",
        data_version=data_version,
        seed=0,
        parameters=parameters | {"model": learning.model.model_dump(mode="json")},
        figures={},
        identity="one",
    )
    return register(learning.warehouse, card, lambda folder: None)


def test_a_quick_training_takes_fewer_and_larger_steps_of_the_same_network() -> None:
    model = ModelParams(fit=FitParams(batch_size=16, learning_rate=0.01))
    found = quick(model)
    assert found.fit.epochs == MOST_EPOCHS <= model.fit.epochs_in("ours")
    settled = found.settled(1080)
    assert (settled.fit.batch_size, settled.loss.mined_per_type) == (128, 16)
    assert settled.fit.learning_rate == pytest.approx(0.02)
    assert (found.network, found.variant) == (model.network, model.variant)
    assert not found.graph.node_metrics and found.graph.predecessors == model.graph.predecessors
    assert found.loss == model.loss
    assert quick(ModelParams(fit=FitParams(epochs=2))).fit.epochs == 2
    assert quick_detection(DetectorParams()) == DetectorParams(trees=MOST_TREES)
    assert quick_detection(DetectorParams(trees=11)).trees == 11


def test_a_model_of_the_same_data_and_parameters_is_used_again(empty: Warehouse) -> None:
    learning = asked(empty)
    assert not is_trained(learning, "v1")
    model_id = made(learning, "v1")
    assert not is_trained(learning, "v1")  # it ended before the model was put into use
    promote(empty, "nodes", model_id, "the first")
    assert is_trained(learning, "v1")


def test_other_data_or_parameters_are_learned_anew(empty: Warehouse) -> None:
    promote(empty, "nodes", made(asked(empty), "v1"), "the first")
    assert not is_trained(asked(empty), "v2")
    assert not is_trained(asked(empty, "other"), "v1")
    assert not is_trained(asked(empty, model=ModelParams(fit=FitParams(seed=1))), "v1")
    assert not is_trained(asked(empty, detect=DetectorParams(trees=11)), "v1")
    assert not is_trained(asked(empty, train=TrainParams(train_share=0.5)), "v1")
    assert is_trained(asked(empty, model=ModelParams(fit=FitParams(batch_size=7))), "v1")  # the demo sets that itself
