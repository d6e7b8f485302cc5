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
from torch import Tensor

from tasks.nodes.params import ModelParams
from tasks.nodes.perona.inputs import NO_TYPE, UNKNOWN, Bools, Floats, Floats32, Ints, NetworkInputs

ABSENT = -1  # in place of a predecessor that there is not


@dataclass(frozen=True)
class GraphSet:
    """targets: (g,) rows of the inputs. predecessors: (g, p) rows, oldest first."""

    inputs: NetworkInputs
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


def graphs_of(inputs: NetworkInputs, targets: Ints, predecessors: Ints) -> GraphSet:
    """The graphs of those of some executions that have all of their predecessors.

    targets: (g,) rows. predecessors: (n, p), one row an execution of the inputs, as predecessors_of has them."""
    rows = np.asarray(targets, dtype=np.int64)
    graphs = GraphSet(inputs, rows, predecessors[rows])
    return graphs.of((graphs.predecessors != ABSENT).all(axis=1))


def predecessors_of(inputs: NetworkInputs, is_normal: Bools, count: int) -> Ints:
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
    place = n_before[:, None] - np.arange(count, 0, -1)  # among all normal ones, in this order
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
        inputs = graphs.inputs
        earlier, later, decay = slot_pairs(params.n_predecessors)
        rows = np.column_stack([graphs.predecessors, graphs.targets])  # (g, p + 1)
        elapsed_s = inputs.started_s[rows[:, later]] - inputs.started_s[rows[:, earlier]]  # (g, k)
        label = np.where(inputs.labels == UNKNOWN, np.nan, inputs.labels).astype(np.float32)
        self.n_inputs, self.n_types = inputs.x.shape[1], len(inputs.types)
        self.edge_size = edge_size(inputs, params)
        self._rows = torch.from_numpy(rows)
        self._ends = torch.from_numpy(np.stack([earlier, later]))  # (2, k)
        self._decay = torch.from_numpy(decay)
        self._intervals = _tensor(encode_intervals(elapsed_s, params.graph.interval_scales_s).astype(np.float32))
        self._node_metrics, self._label = _tensor(inputs.node_metrics), torch.from_numpy(label)
        self._x, self._is_own = _tensor(inputs.x), _tensor(inputs.is_own)
        self._type_of, self._performance = _tensor(inputs.type_of), _tensor(inputs.performance)

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


def slot_pairs(n_predecessors: int) -> tuple[Ints, Ints, Floats32]:
    """The slots that the edges of a graph join, earlier and later, and 2^-(later - earlier): (k,) each.

    p (p + 1) / 2 edges lead forward, and p + 1 from a slot to itself."""
    slots = np.arange(n_predecessors + 1)
    earlier, later = (np.append(ends, slots) for ends in np.triu_indices(n_predecessors + 1, k=1))
    return earlier, later, np.exp2(earlier - later).astype(np.float32)


def edge_size(inputs: NetworkInputs, params: ModelParams) -> int:
    """Length of the attributes of an edge: node metrics of both ends, the decay, and the interval at each scale."""
    return 2 * int(inputs.node_metrics.shape[1]) + 1 + len(params.graph.interval_scales_s)


def encode_intervals(elapsed_s: Floats, scales_s: Sequence[float]) -> Floats:
    """g of each interval at each scale: (…, len(scales_s)). elapsed_s: (…), seconds; negative ones count as 0."""
    elapsed = np.maximum(np.asarray(elapsed_s, dtype=np.float64), 0.0)[..., None]
    return np.asarray(np.exp2(-np.log1p(elapsed / np.asarray(scales_s, dtype=np.float64))))


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))
