"""Tables of benchmark types whose values are written out, and a warehouse with a detector and a small network."""

import numpy as np
import pytest

from tasks.nodes.type_tables import NodeTables, TypeTable


def make_table(rows, *, name="cpu-test", aspect="cpu", units=("1/s",), metrics=(), orientation=None):
    """A type from rows of (node number, value of each metric), in time order; executions are numbered from 0."""
    values = np.array([np.atleast_1d(np.asarray(value, dtype=float)) for _, value in rows])
    m = values.shape[1]
    return TypeTable(
        name=name,
        aspect=aspect,
        executions=np.arange(len(rows)),
        nodes=np.array([node for node, _ in rows], dtype=np.int64),
        metrics=tuple(metrics) or tuple(f"metric_{at}" for at in range(m)),
        units=tuple(units) * (m if len(units) == 1 else 1),
        natural=values,
        orientation=np.ones(m) if orientation is None else np.asarray(orientation, dtype=float),
        scaled=values,
    )


def gathered(*tables, nodes=("a", "b"), machine_types=None):
    """Tables of several types, the executions of each after those of the one before."""
    placed, first = [], 0
    for table in tables:
        kept = {**vars(table), "executions": table.executions + first}
        placed.append(TypeTable(**kept))
        first += len(table.executions)
    return NodeTables(tuple(nodes), tuple(machine_types or ["m"] * len(nodes)), tuple(placed), first)


@pytest.fixture(scope="session")
def table():
    """make_table."""
    return make_table


@pytest.fixture(scope="session")
def together():
    """gathered."""
    return gathered


@pytest.fixture(scope="session")
def campaign():
    """A function: a drawn history, and its tables learned from all executions."""
    from tasks.nodes.params import PreprocessParams
    from tasks.nodes.preprocess.fitting import learn_tables
    from tests.nodes.synthetic import synthetic_history

    def drawn(**asked):
        history = synthetic_history(**asked)
        return history, learn_tables(history, np.ones(len(history.executions), dtype=bool), PreprocessParams())

    return drawn


def small(seed=0, epochs=2):
    """Parameters of a model that is fitted in a moment."""
    from tasks.nodes.params import FitParams, LossParams, ModelParams, NetworkParams

    return ModelParams(
        network=NetworkParams(hidden=8, intermediate=8, heads=1),
        loss=LossParams(mined_per_type=8),
        fit=FitParams(epochs=epochs, batch_size=64, seed=seed),
    )


def trained(warehouse, run_id="run", **asked):
    """A training on the source `log`."""
    from tasks.nodes import steps
    from tasks.nodes.params import PreprocessParams, ScoreParams

    given = (PreprocessParams(), ScoreParams(resamples=100))
    return steps.train(warehouse, "log", small(**asked), *given, run_id)


@pytest.fixture
def train():
    """The function `trained`."""
    return trained


@pytest.fixture(scope="session")
def trained_home(tmp_path_factory, nodes_home, warehouse_in):
    """The home of nodes_home after trainings of the source, verdicts and fingerprints."""
    from tasks.nodes import steps, verdict_steps
    from tasks.nodes.params import AlarmParams, BudgetParams, DetectorParams, PreprocessParams, ScoreParams

    warehouse = warehouse_in(tmp_path_factory.mktemp("trained") / "home", nodes_home)
    quick = ScoreParams(resamples=100)
    given = (PreprocessParams(), DetectorParams(), BudgetParams(), AlarmParams(), quick)
    verdict_steps.learn(warehouse, "log", *given, "run")
    verdict_steps.judge(warehouse, "log", quick)
    trained(warehouse)
    steps.fingerprint(warehouse, "log", quick)
    return warehouse.home


@pytest.fixture
def trained_log(tmp_path, trained_home, warehouse_in):
    """A copy of it for one test."""
    return warehouse_in(tmp_path / "home", trained_home)


@pytest.fixture
def quick_model():
    """The parameters of that model."""
    return small()


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    """Forests of ten trees: no claim here is about forests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.nodes.detect.detector.TREES", 10)
        yield
