"""Executions beside earlier ones of the same node and type: predecessors, edges, and batches of graphs. Source: III-C.

A graph is an execution, its target, beside p earlier ones; in our variant p is 0. Its places, or slots, are 0 … p: the
predecessors, oldest first, then the target. Each earlier slot is joined to each later one, and each to itself. An
edge tells the node metrics of both ends, the decay 2^-(slots between), and for each time constant T of the time between

    g(T) = 2^(-ln(1 + Δt / T))

1 for no time at all, and falling ever more slowly. Whole days count, which the published code of the paper drops.
Batches are gathered from whole arrays: no loop over graphs, no object for each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.nodes.params import ModelParams
from tasks.nodes.perona.inputs import NO_TYPE, UNKNOWN, Bools, Floats, Floats32, Inputs, Ints

ABSENT = -1  # in place of a predecessor that there is not
BLOCK = 65_536  # graphs whose intervals are worked out at once


@dataclass(frozen=True)
class GraphSet:
    """targets: (g,) rows of the inputs. predecessors: (g, p) rows, oldest first."""

    inputs: Inputs
    targets: Ints
    predecessors: Ints

    def __len__(self) -> int:
        """Graphs."""
        return len(self.targets)

    def of(self, chosen: Ints | Bools) -> "GraphSet":
        """Some of the graphs, by number or by mask."""
        return replace(self, targets=self.targets[chosen], predecessors=self.predecessors[chosen])

    def drawn(self, most: int, rng: np.random.Generator) -> "GraphSet":
        """At most so many of the graphs, drawn, in their order."""
        return self if most >= len(self) else self.of(np.sort(rng.choice(len(self), size=most, replace=False)))


def graphs_of(inputs: Inputs, targets: Ints, predecessors: Ints) -> GraphSet:
    """The graphs of those of some executions that have all of their predecessors.

    targets: (g,) rows. predecessors: (n, p), one row an execution of the inputs, as predecessors_of has them. Raises
    ValueError for another shape."""
    if predecessors.ndim != 2 or len(predecessors) != len(inputs):
        raise ValueError(f"predecessors of shape {predecessors.shape}; expected one row for each of {len(inputs)}")
    rows = np.asarray(targets, dtype=np.int64)
    graphs = GraphSet(inputs, rows, predecessors[rows])
    return graphs.of((graphs.predecessors != ABSENT).all(axis=1))


def predecessors_of(inputs: Inputs, is_normal: Bools, count: int) -> Ints:
    """Rows of the latest `count` earlier executions of the same node and type that are normal: (n, count).

    Oldest first; -1 on the left where there are fewer. Earlier means an earlier row, so the order of the history holds
    where starts are equal. An execution of a type that training did not have has none. is_normal: (n,). No loop over
    executions: they are ordered by node and type, and the normal ones before each are counted."""
    group = inputs.series
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
    """n_graphs graphs of p + 1 vertices each, v in all, and E edges. Vertices lie graph by graph, oldest first, the
    target last.

    x, is_own: (v, f). type_of: (v,) -1 for a type that training did not have. label: (v,) 1 stressed, 0 not, NaN
    unknown. performance: (v,) natural logarithm, NaN unknown. edge_index: (2, E) from, to. edge_attr: (E, d), see
    edge_size."""

    n_graphs: int
    x: Tensor
    is_own: Tensor
    type_of: Tensor
    label: Tensor
    performance: Tensor
    edge_index: Tensor
    edge_attr: Tensor


class Batches:
    """Batches of a set of graphs. What does not depend on the choice of graphs is made once."""

    def __init__(self, graphs: GraphSet, params: ModelParams) -> None:
        inputs, count = graphs.inputs, params.n_predecessors
        if graphs.predecessors.shape[1] != count:
            told = graphs.predecessors.shape[1]
            raise ValueError(f"graphs of {told} predecessors; expected {count}, as the parameters say")
        pairs = slot_pairs(count)
        rows = np.column_stack([graphs.predecessors, graphs.targets])  # (g, p + 1)
        self.n_inputs, self.n_types = inputs.x.shape[1], len(inputs.types)
        self.edge_size = edge_size(inputs, params)
        self._rows = torch.from_numpy(rows)
        self._ends = torch.from_numpy(np.stack([pairs.earlier, pairs.later]))  # (2, k)
        self._decay = torch.from_numpy(pairs.decay)
        self._intervals = torch.from_numpy(_intervals(inputs, rows, pairs, params))  # (g, k, scales)
        self._node_metrics = _tensor(inputs.node_metrics)
        self._x, self._is_own = _tensor(inputs.x), _tensor(inputs.is_own)
        self._type_of, self._performance = _tensor(inputs.type_of), _tensor(inputs.performance)
        label = np.where(inputs.labels == UNKNOWN, np.nan, inputs.labels).astype(np.float32)
        self._label = torch.from_numpy(label)

    def __len__(self) -> int:
        """Graphs."""
        return len(self._rows)

    def of(self, numbers: Ints) -> GraphBatch:
        """The graphs of these numbers, in this order; one may be asked for twice. numbers: (b,)"""
        chosen = torch.from_numpy(np.array(numbers, dtype=np.int64))
        rows = self._rows[chosen]  # (b, p + 1)
        row = rows.flatten()  # (v,), graph by graph
        first = torch.arange(len(rows)) * rows.shape[1]
        edge_index = (first[:, None] + self._ends[:, None]).flatten(1)  # (2, b, k) to (2, E)
        before, after = self._node_metrics[row[edge_index]]
        decay = self._decay.repeat(len(rows)).unsqueeze(1)
        return GraphBatch(
            n_graphs=len(rows),
            x=self._x[row],
            is_own=self._is_own[row],
            type_of=self._type_of[row],
            label=self._label[row],
            performance=self._performance[row],
            edge_index=edge_index,
            edge_attr=torch.cat([before, after, decay, self._intervals[chosen].flatten(0, 1)], dim=1),
        )


@dataclass(frozen=True)
class SlotPairs:
    """earlier, later: (k,) the slots that an edge of each kind joins. decay: (k,) 2^-(later - earlier)."""

    earlier: Ints
    later: Ints
    decay: Floats32


def slot_pairs(n_predecessors: int) -> SlotPairs:
    """The edges of a graph: p (p + 1) / 2 forward, and p + 1 from a slot to itself."""
    earlier, later = np.triu_indices(n_predecessors + 1, k=1)
    own = np.arange(n_predecessors + 1)
    earlier, later = np.append(earlier, own), np.append(later, own)
    decay = np.exp2(-(later - earlier).astype(np.float64)).astype(np.float32)
    return SlotPairs(earlier.astype(np.int64), later.astype(np.int64), decay)


def edge_size(inputs: Inputs, params: ModelParams) -> int:
    """Length of the attributes of an edge: node metrics of both ends, the decay, and the interval at each scale."""
    return 2 * int(inputs.node_metrics.shape[1]) + 1 + len(params.graph.interval_scales_s)


def encode_intervals(elapsed_s: Floats, scales_s: Sequence[float]) -> Floats:
    """g of each interval at each scale: (…, len(scales_s)). elapsed_s: (…), seconds; negative ones count as 0."""
    elapsed = np.maximum(np.asarray(elapsed_s, dtype=np.float64), 0.0)[..., None]
    return np.asarray(np.exp2(-np.log1p(elapsed / np.asarray(scales_s, dtype=np.float64))))


def _intervals(inputs: Inputs, rows: Ints, pairs: SlotPairs, params: ModelParams) -> NDArray[np.float32]:
    """Encoded intervals of all edges of each graph: (g, k, scales)."""
    started_s = inputs.started_s[rows]
    found = np.empty((len(rows), len(pairs.decay), len(params.graph.interval_scales_s)), dtype=np.float32)
    for first in range(0, len(rows), BLOCK):
        own = started_s[first : first + BLOCK]
        elapsed = own[:, pairs.later] - own[:, pairs.earlier]
        found[first : first + BLOCK] = encode_intervals(elapsed, params.graph.interval_scales_s)
    return found


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))
