"""Tables of benchmark types whose values are written out, so that answers can be worked out by hand."""

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
    from tasks.nodes.preprocess.params import PreprocessParams
    from tasks.nodes.synthetic import synthetic_history
    from tasks.nodes.tabulating import learn_tables

    def drawn(**asked):
        history = synthetic_history(**asked)
        return history, learn_tables(history, np.ones(len(history.executions), dtype=bool), PreprocessParams())

    return drawn
