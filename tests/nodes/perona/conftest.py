"""Small batches, inputs, histories and graphs whose values are written out or drawn, and networks for them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.nodes.params import (
    FitParams,
    GraphParams,
    LossParams,
    ModelParams,
    NetworkParams,
    PreprocessParams,
    ScoreParams,
)
from tasks.nodes.perona.inputs import (
    UNKNOWN,
    GraphBatch,
    NetworkInputs,
    edge_size,
    graphs_of,
    inputs_of,
    learn_inputs,
    predecessors_of,
)
from tasks.nodes.perona.network import GraphOutputs, network_of
from tests.nodes.synthetic import synthetic_history

N_INPUTS, N_TYPES, EDGE_SIZE, HIDDEN = 5, 3, 7, 4
SAMPLED = {"cpu_busy": ("%", 40.0), "disk_write_bytes": ("B/s", 3e7), "network_in_errors": ("%", 0.0)}
N_NODES, METRICS_EACH = 2, 2
STRESS = 4.0  # what a stressed execution's own metrics lose


def drawn_batch(n_graphs=2, *, seed=0, is_paper=True, stressed=(), unknown=(), types=None, n_types=N_TYPES):
    """Graphs of four vertices each, the last one of each its target, every pair of a graph and each vertex with itself
    an edge; ours: of one vertex.

    stressed, unknown: numbers of graphs whose target is. types: of the graphs, by default 0, 1, 2, 0, …"""
    generator, size = torch.Generator().manual_seed(seed), 4 if is_paper else 1
    graph = torch.repeat_interleave(torch.arange(n_graphs), size)
    is_target = torch.arange(len(graph)) % size == size - 1
    pairs = [(a, b) for a in range(len(graph)) for b in range(a + 1, len(graph)) if graph[a] == graph[b]]
    pairs += [(a, a) for a in range(len(graph))]
    edge_index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    type_of = torch.tensor(types if types is not None else [at % n_types for at in range(n_graphs)])[graph]
    label = torch.zeros(len(graph))
    for numbers, value in ((stressed, 1.0), (unknown, torch.nan)):
        label[is_target & torch.isin(graph, torch.tensor(numbers, dtype=torch.int64))] = value
    x = torch.randn(len(graph), N_INPUTS, generator=generator)
    return GraphBatch(
        n_graphs=n_graphs,
        x=torch.sigmoid(x) if is_paper else x,
        is_own=torch.arange(N_INPUTS) % n_types == type_of[:, None],
        type_of=type_of,
        label=label,
        performance=torch.randn(len(graph), generator=generator) / 4,
        edge_index=edge_index,
        edge_attr=torch.randn(edge_index.shape[1], EDGE_SIZE, generator=generator),
    )


def labelled_batch(n_graphs=3, *, stressed=(0,), **asked):
    """The same in two types, the target of the first graph being stressed."""
    return drawn_batch(n_graphs, stressed=stressed, n_types=2, **asked)


def drawn_outputs(batch, *, seed=1):
    """Drawn answers of the paper's network about a batch of two types, each of which asks for a gradient; stressed ones
    have large codes. The last vertex of each graph is inferred."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(width):
        return torch.randn(len(batch.x), width, generator=generator).requires_grad_()

    with torch.no_grad():
        enc, nxt = drawn(HIDDEN), drawn(HIDDEN)
        enc[batch.label == 1] += 5
        nxt[batch.label == 1] += 2
    decoded_nxt, type_logits_nxt = drawn(N_INPUTS), drawn(2)
    size = len(batch.x) // batch.n_graphs
    return GraphOutputs(
        enc=enc.requires_grad_(), decoded=drawn(N_INPUTS), type_logits=drawn(2), nxt=nxt.requires_grad_(),
        decoded_nxt=decoded_nxt, type_logits_nxt=type_logits_nxt,
        is_inferred=torch.arange(len(batch.x)) % size == size - 1,
        logit=torch.randn(len(batch.x), generator=generator).requires_grad_(),
    )  # fmt: skip


def drawn_network(params=None, *, seed=1):
    """A network of drawn weights for such batches, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = network_of(N_INPUTS, N_TYPES, EDGE_SIZE, params or ModelParams())
        for one in network.parameters():  # no bias of 0 that would hide a mistake
            torch.nn.init.normal_(one, std=0.3)
    return network.eval()


def make_inputs(nodes, types, *, started_s=None, f=3, c=2, seed=0):
    """Inputs of executions of these nodes and types, by number; everything else is drawn from the seed, row by row."""
    n, n_types = len(nodes), max([*types, 0]) + 1
    drawn = np.stack([np.random.default_rng((seed, row)).normal(size=f + c + 1) for row in range(n)] or [[]])
    x, node_metrics, performance = np.split(drawn.astype(np.float32).reshape(n, f + c + 1), np.cumsum([f, c]), axis=1)
    return rows_of_nodes(
        nodes, types, x=x, is_own=x > 0, types=[f"type-{number}" for number in range(n_types)],
        columns=tuple(f"type-{at % n_types}/metric-{at}" for at in range(f)), node_metrics=node_metrics,
        started_s=np.arange(n) * 60.0 if started_s is None else np.asarray(started_s, dtype=np.float64),
        performance=performance[:, 0], labels=(np.arange(n) % 3 - 1).astype(np.int8),
    )  # fmt: skip


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


def draw_inputs(n_rows=120, *, seed=0, is_labelled=True):
    """Executions of three types on two nodes by turns, a fifth of them stressed, one a minute.

    Six metrics, two of each type; the second node is slower by one spread."""
    rng = np.random.default_rng(seed)
    rows = np.arange(n_rows)
    type_of, node_of = rows % N_TYPES, rows // N_TYPES % N_NODES
    is_stressed = rng.random(n_rows) < 0.2
    level = rng.normal(0, 0.5, n_rows) - node_of - STRESS * is_stressed
    is_own = np.repeat(np.arange(N_TYPES), METRICS_EACH) == type_of[:, None]
    x = np.where(is_own, level[:, None] + rng.normal(0, 0.1, is_own.shape), 0.0)
    return rows_of_nodes(
        node_of, type_of, x=x, is_own=is_own, types=[f"type-{number}" for number in range(N_TYPES)],
        columns=tuple(f"type-{at // METRICS_EACH}/metric-{at}" for at in range(N_TYPES * METRICS_EACH)),
        started_s=rows * 60.0, node_metrics=rng.random((n_rows, 2)).astype(np.float32),
        performance=(0.2 * level).astype(np.float32),
        labels=(is_stressed if is_labelled else np.full(n_rows, UNKNOWN)).astype(np.int8),
    )  # fmt: skip


def split(inputs, n_predecessors=0):
    """Graphs of the first 60 %, of the next 20 % and of the last 20 % of the executions."""
    predecessors = predecessors_of(inputs, inputs.labels != 1, n_predecessors)
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
def small():
    """A drawn history of two nodes and two types, twelve runs each, with telemetry."""
    return sampled(synthetic_history(nodes=2, types=2, runs=12, seed=3))


@pytest.fixture(scope="session")
def ours():
    """Parameters of our variant."""
    return ModelParams()


@pytest.fixture(scope="session")
def paper():
    """Parameters of the paper's variant, with node metrics as there."""
    return ModelParams(variant="paper")


@pytest.fixture(scope="session")
def parts():
    """Labelled graphs of training, validation and test."""
    return split(draw_inputs())


def rows_of_nodes(node_of, type_of=None, *, x=None, types=("cpu-a", "disk-b"), nodes=None, **told):
    """Inputs of executions in the order of rows; x has one column, `cpu-a/rate`, that holds the row number."""
    n = len(node_of)
    values = np.arange(n, dtype=np.float32)[:, None] if x is None else np.asarray(x, dtype=np.float32)
    names = tuple(f"cpu-a/metric_{at}" for at in range(values.shape[1]))
    plain = {
        "columns": names,
        "x": values,
        "is_own": np.ones(values.shape, dtype=bool),
        "types": tuple(types),
        "type_of": np.zeros(n, dtype=np.int64) if type_of is None else np.asarray(type_of, dtype=np.int64),
        "nodes": tuple(nodes or (f"node-{at + 1}" for at in range(max([*node_of, 0]) + 1))),
        "node_of": np.asarray(node_of, dtype=np.int64),
        "started_s": np.arange(n, dtype=np.float64),
        "node_metrics": np.empty((n, 0), dtype=np.float32),
        "performance": np.full(n, np.nan, dtype=np.float32),
        "labels": np.full(n, -1, dtype=np.int8),
    }
    return NetworkInputs(**{**plain, **told})


@pytest.fixture(scope="session")
def case():
    """A drawn history of 2 nodes, 2 types, 15 runs each, its inputs, and an untrained network of a fixed seed."""

    history = synthetic_history(nodes=2, types=2, runs=15)
    params = ModelParams()
    everything = np.ones(len(history.executions), dtype=bool)
    scales = learn_inputs(history, everything, params, PreprocessParams(), ScoreParams())
    found = inputs_of(history, scales, params)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = network_of(found.x.shape[1], len(found.types), edge_size(found, params), params)
    return SimpleNamespace(history=history, scales=scales, params=params, inputs=found, network=network)
