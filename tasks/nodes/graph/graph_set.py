"""Graphs to learn from or to judge: an execution each, beside earlier ones of the same node and type."""

from dataclasses import dataclass, replace

import numpy as np

from tasks.nodes.graph.inputs import Bools, Inputs, Ints
from tasks.nodes.model.params import ModelParams

ABSENT = -1  # in place of a predecessor that there is not


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
    """Predecessors without which an execution has no graph: all of them in the paper's variant, none in ours."""
    return params.graph.predecessors if params.variant == "paper" else 0
