"""A warehouse in which a small model was trained and asked once."""

import shutil

import pytest

from tasks.warehouse.place import Warehouse


def small(seed=0, epochs=2):
    """Parameters of a model that is fitted in a moment."""
    from tasks.nodes.perona.params import (
        FitParams,
        GraphParams,
        LossParams,
        ModelParams,
        NetworkParams,
    )

    return ModelParams(
        graph=GraphParams(node_metrics=False),
        network=NetworkParams(hidden=8, intermediate=8, heads=1, dropout=0.0, edge_dropout=0.0),
        loss=LossParams(mined_per_type=8),
        fit=FitParams(epochs=epochs, batch_size=64, seed=seed),
    )


def trained(warehouse, run_id="run", **asked):
    """A training on the source `log`."""
    from tasks.nodes.detectors.params import DetectorParams

    from tasks.nodes import learned_steps
    from tasks.nodes.perona.params import TrainParams
    from tasks.nodes.preprocess.params import PreprocessParams
    from tasks.nodes.score_params import ScoreParams

    given = (TrainParams(), PreprocessParams(), ScoreParams(resamples=100), DetectorParams(trees=10))
    return learned_steps.train(warehouse, "log", small(**asked), *given, run_id)


@pytest.fixture
def train():
    """The function `trained`."""
    return trained


@pytest.fixture(scope="session")
def trained_home(tmp_path_factory, nodes_home):
    """The home of nodes_home after a training of the source and a fingerprinting by it."""
    from tasks.nodes import learned_steps
    from tasks.nodes.perona.params import FingerprintParams
    from tasks.nodes.score_params import ScoreParams

    home = tmp_path_factory.mktemp("trained") / "home"
    shutil.copytree(nodes_home, home)
    warehouse = Warehouse(home=home, memory_mb=256, threads=1)
    trained(warehouse)
    learned_steps.fingerprint(warehouse, "log", FingerprintParams(), ScoreParams(resamples=100))
    return home


@pytest.fixture
def trained_log(tmp_path, trained_home):
    """A copy of it for one test."""
    home = tmp_path / "home"
    shutil.copytree(trained_home, home)
    return Warehouse(home=home, memory_mb=256, threads=1)


@pytest.fixture
def quick_model():
    """The parameters of that model."""
    return small()
