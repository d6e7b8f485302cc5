"""Small drawn graphs whose stress can be seen, and parameters of a network that is fitted in a moment."""

import numpy as np
import pytest

from tasks.nodes.perona.graph import graphs_of, predecessors_of
from tasks.nodes.perona.inputs import UNKNOWN, Inputs
from tasks.nodes.perona.params import FitParams, GraphParams, LossParams, ModelParams, NetworkParams

N_TYPES, N_NODES, METRICS_EACH = 3, 2, 2
STRESS = 4.0  # what a stressed execution's own metrics lose


def draw_inputs(n_rows=120, *, seed=0, n_evidence=0, is_labelled=True):
    """Executions of three types on two nodes by turns, a fifth of them stressed, one a minute.

    Six metrics, two of each type; the second node is slower by one spread."""
    rng = np.random.default_rng(seed)
    rows = np.arange(n_rows)
    type_of, node_of = rows % N_TYPES, rows // N_TYPES % N_NODES
    is_stressed = rng.random(n_rows) < 0.2
    level = rng.normal(0, 0.5, n_rows) - node_of - STRESS * is_stressed
    is_own = np.repeat(np.arange(N_TYPES), METRICS_EACH) == type_of[:, None]
    x = np.where(is_own, level[:, None] + rng.normal(0, 0.1, is_own.shape), 0.0)
    return Inputs(
        columns=tuple(f"type-{at // METRICS_EACH}/metric-{at}" for at in range(N_TYPES * METRICS_EACH)),
        x=x.astype(np.float32),
        is_own=is_own,
        types=tuple(f"type-{number}" for number in range(N_TYPES)),
        type_of=type_of.astype(np.int64),
        nodes=("node-0", "node-1"),
        node_of=node_of.astype(np.int64),
        started_s=rows * 60.0,
        before=rng.normal(size=(n_rows, 2)).astype(np.float32),
        during=rng.normal(size=(n_rows, 2)).astype(np.float32),
        evidence=rng.normal(size=(n_rows, n_evidence)).astype(np.float32),
        performance=(0.2 * level).astype(np.float32),
        labels=(is_stressed if is_labelled else np.full(n_rows, UNKNOWN)).astype(np.int8),
    )


def split(inputs, is_normal=None):
    """Graphs of the first 60 %, of the next 20 % and of the last 20 % of the executions."""
    normal = inputs.labels != 1 if is_normal is None else is_normal
    predecessors = predecessors_of(inputs, normal, 3)
    first, second = int(0.6 * len(inputs)), int(0.8 * len(inputs))
    parts = (range(first), range(first, second), range(second, len(inputs)))
    return tuple(graphs_of(inputs, np.array(part), predecessors) for part in parts)


def small_params(**fit):
    """Ours, small: 4 epochs of batches of 16."""
    return ModelParams(
        graph=GraphParams(interval_scales_s=(60.0, 3600.0)),
        network=NetworkParams(hidden=8, intermediate=12, heads=1),
        loss=LossParams(),
        fit=FitParams(**{"epochs": 4, **fit}),
    )


@pytest.fixture(scope="session")
def drawn():
    """draw_inputs."""
    return draw_inputs


@pytest.fixture(scope="session")
def parts_of():
    """split."""
    return split


@pytest.fixture(scope="session")
def parts():
    """Labelled graphs of training, validation and test."""
    return split(draw_inputs())


@pytest.fixture(scope="session")
def quick():
    """small_params."""
    return small_params
