"""What several benchmarks are timed on."""

import numpy as np
import pytest

from tasks.nodes.params import ModelParams, PreprocessParams, ScoreParams
from tasks.nodes.perona.inputs import GraphSet, graphs_of, inputs_of, learn_inputs, predecessors_of
from tests.nodes.synthetic import synthetic_history


@pytest.fixture(scope="session")
def campaign_graphs() -> tuple[GraphSet, GraphSet]:
    """1,080 graphs to learn from and 360 to select by, in time order: the size of a campaign of 1,800."""
    history = synthetic_history(nodes=3, types=6, runs=100)
    n = len(history.executions)
    first, second = int(0.6 * n), int(0.8 * n)
    scales = learn_inputs(history, np.arange(n) < first, ModelParams(), PreprocessParams(), ScoreParams())
    inputs = inputs_of(history, scales, ModelParams())
    predecessors = predecessors_of(inputs, inputs.labels == 0, 0)
    train, validation = (graphs_of(inputs, np.arange(*part), predecessors) for part in ((0, first), (first, second)))
    return train, validation
