"""Inputs written out by hand, networks that answer by rule, and a small real one."""

from types import SimpleNamespace

import numpy as np
import pytest

COUNT = 3  # predecessors


def make_inputs(node_of, type_of=None, *, x=None, types=("cpu-a", "disk-b"), nodes=None, **told):
    """Inputs of executions in the order of rows; x has one column, `cpu-a/rate`, that holds the row number."""
    from tasks.nodes.perona.inputs import Inputs

    n = len(node_of)
    values = np.arange(n, dtype=np.float32)[:, None] if x is None else np.asarray(x, dtype=np.float32)
    names = tuple(f"cpu-a/metric_{at}" for at in range(values.shape[1]))
    plain = {
        "columns": names,
        "x": values,
        "is_own": np.ones(values.shape, dtype=bool),
        "types": tuple(types),
        "type_of": np.zeros(n, dtype=np.int64) if type_of is None else np.asarray(type_of, dtype=np.int64),
        "nodes": tuple(nodes or (f"node-{at + 1}" for at in range(max(node_of, default=0) + 1))),
        "node_of": np.asarray(node_of, dtype=np.int64),
        "started_s": np.arange(n, dtype=np.float64),
        "before": np.empty((n, 0), dtype=np.float32),
        "during": np.empty((n, 0), dtype=np.float32),
        "performance": np.full(n, np.nan, dtype=np.float32),
        "labels": np.full(n, -1, dtype=np.int8),
    }
    return Inputs(**{**plain, **told})


def make_stub(answer, *, expected=None, variant="ours"):
    """A network whose logit of a graph is answer(rows), rows (p + 1,) being those of x, -1 where there is none.

    expected: what it decodes, as a function of the same rows; zeros if none is given."""
    import torch

    from tasks.nodes.perona.params import (
        GraphParams,
        ModelParams,
    )

    class Stub(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.params = ModelParams(variant=variant, graph=GraphParams(predecessors=COUNT))
            self.fewest = COUNT if variant == "paper" else 0
            self.n_asked = 0

        def forward(self, batch):
            table = torch.full((batch.n_graphs, COUNT + 1), -1, dtype=torch.int64)
            table[batch.graph, batch.slot] = batch.x[:, 0].long()
            rows = table.numpy()
            self.n_asked += len(rows)
            logit = torch.full((len(batch.x),), float("nan"))
            logit[batch.is_target] = torch.tensor([float(answer(tuple(own))) for own in rows.tolist()])
            decoded = torch.zeros_like(batch.x)
            if expected is not None:
                told = np.array([expected(tuple(own)) for own in rows.tolist()], dtype=np.float32)
                decoded[batch.is_target] = torch.from_numpy(told)
            return SimpleNamespace(logit=logit, is_inferred=batch.n_predecessors > 0, decoded_nxt=decoded)

    return Stub()


@pytest.fixture(scope="session")
def inputs():
    """make_inputs."""
    return make_inputs


@pytest.fixture(scope="session")
def stub():
    """make_stub."""
    return make_stub


@pytest.fixture(scope="session")
def drawn():
    """A drawn history of 2 nodes, 2 types, 15 runs each, its inputs, and an untrained network of a fixed seed."""
    import torch

    from tasks.nodes.perona.graph import edge_size
    from tasks.nodes.perona.inputs import inputs_of, learn_inputs
    from tasks.nodes.perona.network import PeronaNetwork
    from tasks.nodes.perona.params import ModelParams
    from tasks.nodes.preprocess.params import PreprocessParams
    from tasks.nodes.score_params import ScoreParams
    from tasks.nodes.synthetic import synthetic_history

    history = synthetic_history(nodes=2, types=2, runs=15)
    params = ModelParams()
    everything = np.ones(len(history.executions), dtype=bool)
    scales = learn_inputs(history, everything, params, PreprocessParams(), ScoreParams())
    found = inputs_of(history, scales, params)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = PeronaNetwork(found.x.shape[1], len(found.types), edge_size(found, params), params)
    return SimpleNamespace(history=history, scales=scales, params=params, inputs=found, network=network)
