"""Inputs and telemetry whose values are written out or drawn, for graphs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.perona.inputs import Inputs
from tasks.nodes.perona.params import GraphParams, ModelParams
from tasks.nodes.synthetic import synthetic_history

WITH_NODE_METRICS = GraphParams(node_metrics=True)

SAMPLED = {"cpu_busy": ("%", 40.0), "disk_write_bytes": ("B/s", 3e7), "network_in_errors": ("%", 0.0)}


def make_inputs(nodes, types, *, started_s=None, f=3, c=2, v=1, seed=0):
    """Inputs of executions of these nodes and types, by number; everything else is drawn from the seed, row by row."""
    n = len(nodes)
    drawn = np.stack([np.random.default_rng((seed, row)).normal(size=f + 2 * c + v + 1) for row in range(n)] or [[]])
    drawn = drawn.astype(np.float32).reshape(n, f + 2 * c + v + 1)
    x, before, during, evidence, performance = np.split(drawn, np.cumsum([f, c, c, v]), axis=1)
    started = np.arange(n) * 60.0 if started_s is None else np.asarray(started_s, dtype=np.float64)
    n_types = max([*types, 0]) + 1
    return Inputs(
        columns=tuple(f"type-{at % n_types}/metric-{at}" for at in range(f)),
        x=x,
        is_own=x > 0,
        types=tuple(f"type-{number}" for number in range(n_types)),
        type_of=np.asarray(types, dtype=np.int64),
        nodes=tuple(f"node-{number}" for number in range(max([*nodes, 0]) + 1)),
        node_of=np.asarray(nodes, dtype=np.int64),
        started_s=started,
        before=before,
        during=during,
        evidence=evidence,
        performance=performance[:, 0],
        labels=(np.arange(n) % 3 - 1).astype(np.int8),
    )


def sampled(history, *, seed=0):
    """The history with telemetry of each execution: five samples before it, two during it, one after it."""
    rows = []
    for execution in range(len(history.executions)):
        rng = np.random.default_rng((seed, execution))
        at_s = np.array([-55.0, -40, -30, -20, -10, 0.5, 1.5, 3.0])
        for metric, (unit, level) in SAMPLED.items():
            rows.append((execution, metric, unit, at_s, level * rng.gamma(2.0, size=len(at_s))))
    telemetry = pd.DataFrame(rows, columns=["execution", "metric", "unit", "at_s", "samples"])
    return replace(history, telemetry=telemetry.astype({"execution": "int64", "metric": "str", "unit": "str"}))


@pytest.fixture(scope="session")
def inputs_with():
    """make_inputs."""
    return make_inputs


@pytest.fixture(scope="session")
def with_telemetry():
    """sampled."""
    return sampled


@pytest.fixture(scope="session")
def small():
    """A drawn history of two nodes and two types, twelve runs each, with telemetry."""
    return sampled(synthetic_history(nodes=2, types=2, runs=12, seed=3))


@pytest.fixture(scope="session")
def ours():
    """Parameters of our variant, with node metrics."""
    return ModelParams(graph=WITH_NODE_METRICS)


@pytest.fixture(scope="session")
def paper():
    """Parameters of the paper's variant, with node metrics as there."""
    return ModelParams(variant="paper", graph=WITH_NODE_METRICS)
