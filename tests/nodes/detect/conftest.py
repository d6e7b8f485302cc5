"""Tables of executions written out by hand, and drawn ones with known truth."""

import numpy as np
import pytest

from tasks.nodes.type_tables import NodeTables, TypeTable


def make_tables(natural, nodes, *, name="spin@1", metrics=None, units=None, orientation=None, is_directed=None, **told):
    """One type. natural: (n, m) in base units. nodes: (n,) numbers. More is better of each metric, if nothing is said.

    told: names and machines of the nodes."""
    natural = np.asarray(natural, dtype=np.float64)
    n, m = natural.shape
    nodes = np.asarray(nodes, dtype=np.int64)
    names = told.get("names") or tuple(f"node-{at}" for at in range(int(nodes.max(initial=-1)) + 1))
    direction = np.ones(m) if orientation is None else np.asarray(orientation, dtype=np.float64)
    table = TypeTable(
        name=name,
        aspect="cpu",
        executions=np.arange(n),
        nodes=nodes,
        metrics=tuple(metrics or (f"metric_{at}" for at in range(m))),
        units=tuple(units or [""] * m),
        natural=natural,
        orientation=direction,
        scaled=natural,
        is_directed=None if is_directed is None else np.asarray(is_directed, dtype=bool),
    )
    return NodeTables(tuple(names), tuple(told.get("machines") or [""] * len(names)), (table,), n)


@pytest.fixture(scope="session")
def tables():
    """make_tables."""
    return make_tables


@pytest.fixture(scope="session")
def drawn():
    """A function: executions of one type on some nodes in turn, an hour apart, and which of them are stressed.

    Metric `rate` (more is better) and `wait` (less is) have their own noise of 5 %; a stressed execution loses `dose`
    of these deviations in the metrics `falls`."""

    def draw(n=400, n_nodes=4, *, stressed=0.2, dose=6.0, falls=("rate",), seed=0, **told):
        rng = np.random.default_rng(seed)
        nodes = np.arange(n) % n_nodes
        is_stressed = rng.random(n) < stressed
        level = np.log([100.0, 0.02]) + 0.3 * rng.standard_normal((n_nodes, 2))
        x = level[nodes] + 0.05 * rng.standard_normal((n, 2))
        for at, (metric, way) in enumerate({"rate": -1.0, "wait": 1.0}.items()):
            if metric in falls:
                x[is_stressed, at] += way * dose * 0.05
        given = {"metrics": ("rate", "wait"), "units": ("1/s", "s"), "orientation": (1.0, -1.0)} | told
        return make_tables(np.exp(x), nodes, **given), np.arange(n, dtype=np.float64), is_stressed

    return draw
