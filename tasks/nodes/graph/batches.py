"""Batches of graphs as tensors, gathered from whole arrays: no loop over graphs, no object for each.

The same numbers, one torch_geometric Data each graph, are in plain_batches.py; a test holds the two equal."""

from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.nodes.graph.graph_set import GraphSet
from tasks.nodes.graph.inputs import UNKNOWN, Inputs, Ints
from tasks.nodes.graph.intervals import encode_intervals
from tasks.nodes.graph.slots import SlotPairs, edge_size, slot_pairs
from tasks.nodes.model.params import ModelParams

BLOCK = 65_536  # graphs whose intervals are worked out at once


@dataclass(frozen=True)
class GraphBatch:
    """Some graphs; v vertices and E edges in all. Vertices lie graph by graph, oldest first, the target last.

    x, is_own: (v, f). type_of: (v,) -1 for a type that training did not have. label: (v,) 1 stressed, 0 not, NaN
    unknown. performance: (v,) natural logarithm, NaN unknown. evidence: (v, e). graph: (v,) number in this batch.
    slot: (v,) 0 … p, p being the target. is_target: (v,). n_predecessors: (v,) earlier vertices of the same graph.
    edge_index: (2, E) from, to. edge_attr: (E, d), see slots.edge_size."""

    x: Tensor
    is_own: Tensor
    type_of: Tensor
    label: Tensor
    performance: Tensor
    evidence: Tensor
    graph: Tensor
    slot: Tensor
    is_target: Tensor
    n_predecessors: Tensor
    edge_index: Tensor
    edge_attr: Tensor

    def to(self, device: torch.device | str) -> "GraphBatch":
        """On another device."""
        return GraphBatch(**{one.name: getattr(self, one.name).to(device) for one in fields(self)})

    @property
    def n_graphs(self) -> int:
        """Graphs; each has one target."""
        return int(self.is_target.sum())


class Batches:
    """Batches of a set of graphs. What does not depend on the choice of graphs is made once."""

    def __init__(self, graphs: GraphSet, params: ModelParams) -> None:
        inputs, n_slots = graphs.inputs, params.graph.predecessors + 1
        if graphs.predecessors.shape[1] + 1 != n_slots:
            told = graphs.predecessors.shape[1]
            raise ValueError(f"graphs of up to {told} predecessors; expected {n_slots - 1}, as the parameters say")
        pairs = slot_pairs(params)
        rows = np.column_stack([graphs.predecessors, graphs.targets])  # (g, p + 1)
        self.n_graphs = len(graphs)
        self.n_inputs, self.n_types, self.n_evidence = inputs.x.shape[1], len(inputs.types), inputs.evidence.shape[1]
        self.edge_size = edge_size(inputs, params)
        self._rows, self._is_there = torch.from_numpy(np.maximum(rows, 0)), torch.from_numpy(rows >= 0)
        self._earlier, self._later = torch.from_numpy(pairs.earlier), torch.from_numpy(pairs.later)
        self._decay = torch.from_numpy(pairs.decay)
        self._intervals = torch.from_numpy(_intervals(inputs, rows, pairs, params))  # (g, k, scales)
        self._context_earlier, self._context_later = _contexts(inputs, params)
        self._x, self._is_own = _tensor(inputs.x), _tensor(inputs.is_own)
        self._type_of, self._evidence = _tensor(inputs.type_of), _tensor(inputs.evidence)
        self._performance = _tensor(inputs.performance)
        label = np.where(inputs.labels == UNKNOWN, np.nan, inputs.labels).astype(np.float32)
        self._label = torch.from_numpy(label)

    def __len__(self) -> int:
        """Graphs."""
        return self.n_graphs

    def of(self, numbers: Ints) -> GraphBatch:
        """The graphs of these numbers, in this order; one may be asked for twice. numbers: (b,)"""
        chosen = torch.from_numpy(np.array(numbers, dtype=np.int64))
        rows, is_there = self._rows[chosen], self._is_there[chosen]  # (b, p + 1)
        graph, slot = is_there.nonzero(as_tuple=True)  # (v,), graph by graph
        row = rows[is_there]
        vertex = (is_there.flatten().cumsum(0) - 1).view_as(rows)
        is_edge = is_there[:, self._earlier] & is_there[:, self._later]  # (b, k)
        edge_index = torch.stack([vertex[:, self._earlier][is_edge], vertex[:, self._later][is_edge]])
        return GraphBatch(
            x=self._x[row],
            is_own=self._is_own[row],
            type_of=self._type_of[row],
            label=self._label[row],
            performance=self._performance[row],
            evidence=self._evidence[row],
            graph=graph,
            slot=slot,
            is_target=slot == rows.shape[1] - 1,
            n_predecessors=(is_there.cumsum(1) - 1)[is_there],
            edge_index=edge_index,
            edge_attr=self._edge_attr(chosen, is_edge, row[edge_index]),
        )

    def _edge_attr(self, chosen: Tensor, is_edge: Tensor, ends: Tensor) -> Tensor:
        """(E, d). is_edge: (b, k). ends: (2, E) rows of the inputs."""
        context = [self._context_earlier[ends[0]], self._context_later[ends[1]]]
        decay = self._decay.expand_as(is_edge)[is_edge].unsqueeze(1)
        return torch.cat([*context, decay, self._intervals[chosen][is_edge]], dim=1)


def _contexts(inputs: Inputs, params: ModelParams) -> tuple[Tensor, Tensor]:
    """What an edge tells of the earlier execution, and what of the later one: (n, …) each."""
    if params.variant == "paper":
        return _tensor(inputs.during), _tensor(inputs.during)
    return _tensor(inputs.during[:, :0]), _tensor(np.hstack([inputs.before, inputs.during]))


def _intervals(inputs: Inputs, rows: Ints, pairs: SlotPairs, params: ModelParams) -> NDArray[np.float32]:
    """Encoded intervals of all edges that a graph can have: (g, k, scales); those of absent vertices mean nothing."""
    started_s = inputs.started_s[np.maximum(rows, 0)]
    found = np.empty((len(rows), len(pairs.decay), len(params.graph.interval_scales_s)), dtype=np.float32)
    for first in range(0, len(rows), BLOCK):
        own = started_s[first : first + BLOCK]
        elapsed = own[:, pairs.later] - own[:, pairs.earlier]
        found[first : first + BLOCK] = encode_intervals(elapsed, params.graph.interval_scales_s)
    return found


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))
