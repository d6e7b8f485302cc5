"""Graphs the plain way: one torch_geometric Data each, put together by torch_geometric.

What batches.py gathers is compared with these, and its speed too. Importing this takes seconds."""

from collections.abc import Sequence

import numpy as np
import torch
from torch_geometric.data import Batch, Data

from tasks.nodes.graph.batches import GraphBatch
from tasks.nodes.graph.graph_set import ABSENT, GraphSet
from tasks.nodes.graph.inputs import UNKNOWN, Floats32, Inputs
from tasks.nodes.graph.intervals import encode_intervals
from tasks.nodes.model.params import ModelParams


def as_data_list(graphs: GraphSet, params: ModelParams) -> list[Data]:
    """One Data a graph, with the fields of a GraphBatch but `graph`, which torch_geometric makes as `batch`."""
    return [_data(graphs, number, params) for number in range(len(graphs))]


def as_graph_batch(datas: Sequence[Data]) -> GraphBatch:
    """Some graphs together, as Batches.of has them."""
    told = Batch.from_data_list(list(datas))
    names = ("x", "is_own", "type_of", "label", "performance", "evidence", "slot", "is_target", "n_predecessors")
    return GraphBatch(
        **{name: told[name] for name in names},
        graph=told.batch,
        edge_index=told.edge_index,
        edge_attr=told.edge_attr,
    )


def _data(graphs: GraphSet, number: int, params: ModelParams) -> Data:
    inputs = graphs.inputs
    row_of = [*graphs.predecessors[number].tolist(), int(graphs.targets[number])]
    slots = [slot for slot, row in enumerate(row_of) if row != ABSENT]
    rows = [row_of[slot] for slot in slots]
    places = range(len(slots))
    edges = [(a, b) for a in places for b in places if a < b]
    if params.variant == "paper":
        edges += [(a, a) for a in places]
    attributes = [_edge_attr(inputs, rows[a], rows[b], slots[b] - slots[a], params) for a, b in edges]
    width = _edge_attr(inputs, rows[-1], rows[-1], 0, params).shape
    labels = inputs.labels[rows]
    return Data(
        x=torch.tensor(inputs.x[rows]),
        is_own=torch.tensor(inputs.is_own[rows]),
        type_of=torch.tensor(inputs.type_of[rows]),
        label=torch.tensor(np.where(labels == UNKNOWN, np.nan, labels).astype(np.float32)),
        performance=torch.tensor(inputs.performance[rows]),
        evidence=torch.tensor(inputs.evidence[rows]),
        slot=torch.tensor(slots),
        is_target=torch.tensor([slot == len(row_of) - 1 for slot in slots]),
        n_predecessors=torch.tensor(list(places)),
        edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T.contiguous(),
        edge_attr=torch.tensor(np.array(attributes, dtype=np.float32).reshape(-1, *width)),
    )


def _edge_attr(inputs: Inputs, earlier: int, later: int, steps: int, params: ModelParams) -> Floats32:
    """(d,). earlier, later: rows. steps: slots between them."""
    if params.variant == "paper":
        context = [inputs.during[earlier], inputs.during[later]]
    else:
        context = [inputs.before[later], inputs.during[later]]
    elapsed = np.float64(inputs.started_s[later] - inputs.started_s[earlier])
    intervals = encode_intervals(np.asarray(elapsed), params.graph.interval_scales_s)
    return np.concatenate([*context, [2.0**-steps], intervals]).astype(np.float32)
