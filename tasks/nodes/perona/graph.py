"""Executions beside earlier ones of the same node and type: predecessors, edges, and batches of graphs. Source: III-C.

A graph is an execution, its target, beside up to p earlier ones. Its places, or slots, are 0 … p: the predecessors,
oldest first, then the target. Each earlier slot is joined to each later one, in the paper each also to itself. An edge
tells node metrics, the decay 2^-(slots between), and for each time constant T of the time between

    g(T) = 2^(-ln(1 + Δt / T))

1 for no time at all, and falling ever more slowly. Whole days count, which the published code of the paper drops.
Batches are gathered from whole arrays: no loop over graphs, no object for each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.nodes.perona.inputs import NO_TYPE, UNKNOWN, Bools, Floats, Floats32, Inputs, Ints
from tasks.nodes.perona.params import ModelParams

ABSENT = -1  # in place of a predecessor that there is not
BLOCK = 65_536  # graphs whose intervals are worked out at once


@dataclass(frozen=True)
class GraphSet:
    """targets: (g,) rows of the inputs. predecessors: (g, p) rows, oldest first, -1 where there are fewer than p, so
    that the latest is always the last."""

    inputs: Inputs
    targets: Ints
    predecessors: Ints

    def __len__(self) -> int:
        """Graphs."""
        return len(self.targets)

    @property
    def n_predecessors(self) -> Ints:
        """Of each graph, (g,)."""
        return np.asarray((self.predecessors != ABSENT).sum(axis=1), dtype=np.int64)

    def of(self, chosen: Ints | Bools) -> "GraphSet":
        """Some of the graphs, by number or by mask."""
        return replace(self, targets=self.targets[chosen], predecessors=self.predecessors[chosen])


def graphs_of(inputs: Inputs, targets: Ints, predecessors: Ints, *, least: int = 0) -> GraphSet:
    """The graphs of some executions.

    targets: (g,) rows. predecessors: (n, p), one row an execution of the inputs, as predecessors_of has them. Graphs
    with fewer than `least` predecessors are left out (see least_predecessors). Raises ValueError for another shape."""
    if predecessors.ndim != 2 or len(predecessors) != len(inputs):
        raise ValueError(f"predecessors of shape {predecessors.shape}; expected one row for each of {len(inputs)}")
    rows = np.asarray(targets, dtype=np.int64)
    graphs = GraphSet(inputs, rows, predecessors[rows])
    return graphs.of(graphs.n_predecessors >= least) if least else graphs


def least_predecessors(params: ModelParams) -> int:
    """Predecessors without which an execution is not learned from: all of them in the paper's variant, none in ours."""
    return params.graph.predecessors if params.variant == "paper" else 0


def predecessors_of(inputs: Inputs, is_normal: Bools, count: int) -> Ints:
    """Rows of the latest `count` earlier executions of the same node and type that are normal: (n, count).

    Oldest first; -1 on the left where there are fewer. Earlier means an earlier row, so the order of the history holds
    where starts are equal. An execution of a type that training did not have has none. is_normal: (n,). No loop over
    executions: they are ordered by node and type, and the normal ones before each are counted."""
    group = inputs.node_of * (len(inputs.types) + 1) + inputs.type_of
    order = np.argsort(group, kind="stable")
    normal = is_normal[order]
    n_before: Ints = np.cumsum(normal) - normal  # normal ones before each row, of all groups so far
    is_first = np.diff(group[order], prepend=-2) != 0
    n_before_group = np.maximum.accumulate(np.where(is_first, n_before, 0))
    back = np.arange(count, 0, -1)
    place = n_before[:, None] - back  # among all normal ones, in this order
    is_there = (place >= n_before_group[:, None]) & (inputs.type_of[order] != NO_TYPE)[:, None]
    normal_rows = np.append(order[normal], ABSENT)
    found = np.full((len(order), count), ABSENT, dtype=np.int64)
    found[order] = np.where(is_there, normal_rows[np.where(is_there, place, -1)], ABSENT)
    return found


@dataclass(frozen=True)
class GraphBatch:
    """Some graphs; v vertices and E edges in all. Vertices lie graph by graph, oldest first, the target last.

    x, is_own: (v, f). type_of: (v,) -1 for a type that training did not have. label: (v,) 1 stressed, 0 not, NaN
    unknown. performance: (v,) natural logarithm, NaN unknown. graph: (v,) number in this batch.
    slot: (v,) 0 … p, p being the target. is_target: (v,). n_predecessors: (v,) earlier vertices of the same graph.
    edge_index: (2, E) from, to. edge_attr: (E, d), see edge_size."""

    x: Tensor
    is_own: Tensor
    type_of: Tensor
    label: Tensor
    performance: Tensor
    graph: Tensor
    slot: Tensor
    is_target: Tensor
    n_predecessors: Tensor
    edge_index: Tensor
    edge_attr: Tensor

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
        self.n_inputs, self.n_types = inputs.x.shape[1], len(inputs.types)
        self.edge_size = edge_size(inputs, params)
        self._rows, self._is_there = torch.from_numpy(np.maximum(rows, 0)), torch.from_numpy(rows >= 0)
        self._earlier, self._later = torch.from_numpy(pairs.earlier), torch.from_numpy(pairs.later)
        self._decay = torch.from_numpy(pairs.decay)
        self._intervals = torch.from_numpy(_intervals(inputs, rows, pairs, params))  # (g, k, scales)
        self._context_earlier, self._context_later = _contexts(inputs, params)
        self._x, self._is_own = _tensor(inputs.x), _tensor(inputs.is_own)
        self._type_of, self._performance = _tensor(inputs.type_of), _tensor(inputs.performance)
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


@dataclass(frozen=True)
class SlotPairs:
    """earlier, later: (k,) the slots that an edge of each kind joins. decay: (k,) 2^-(later - earlier)."""

    earlier: Ints
    later: Ints
    decay: Floats32


def slot_pairs(params: ModelParams) -> SlotPairs:
    """The edges of a graph in which no predecessor is absent: p (p + 1) / 2, and p + 1 more in the paper's variant."""
    n_slots = params.graph.predecessors + 1
    earlier, later = np.triu_indices(n_slots, k=1)
    if params.variant == "paper":
        own = np.arange(n_slots)
        earlier, later = np.append(earlier, own), np.append(later, own)
    decay = np.exp2(-(later - earlier).astype(np.float64)).astype(np.float32)
    return SlotPairs(earlier.astype(np.int64), later.astype(np.int64), decay)


def edge_size(inputs: Inputs, params: ModelParams) -> int:
    """Length of the attributes of an edge.

    Ours: node metrics before and during the later execution. Paper: their difference, of both executions. Then the
    decay and one encoding of the interval for each scale."""
    if params.variant == "paper":
        n_context: int = 2 * inputs.during.shape[1]
    else:
        n_context = inputs.before.shape[1] + inputs.during.shape[1]
    return n_context + 1 + len(params.graph.interval_scales_s)


def encode_intervals(elapsed_s: Floats, scales_s: Sequence[float]) -> Floats:
    """g of each interval at each scale: (…, len(scales_s)). elapsed_s: (…), seconds; negative ones count as 0."""
    elapsed = np.maximum(np.asarray(elapsed_s, dtype=np.float64), 0.0)[..., None]
    return np.asarray(np.exp2(-np.log1p(elapsed / np.asarray(scales_s, dtype=np.float64))))


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
