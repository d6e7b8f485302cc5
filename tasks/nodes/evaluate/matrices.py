"""One row a node: its microbenchmarks on one side, the applications that ran on it on the other."""

from dataclasses import dataclass, replace

import numpy as np

from tasks.nodes.aspects import APPLICATION
from tasks.nodes.group_medians import group_medians
from tasks.nodes.reference_fleet import PER_SECOND, learn_reference
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import Levels, score_nodes
from tasks.nodes.type_tables import Bools, Floats, NodeTables

UNKNOWN = "unknown"  # machine type of nodes of which nobody says it, in keys of figures


@dataclass(frozen=True)
class NodeMatrix:
    """micro: (n_nodes, n_types) log scores of each microbenchmark type, NaN where it did not run. levels: how they sum
    up. applications: (n_nodes, n_series) medians of what applications reached, oriented so that more is better, NaN
    where they did not run. series: their names. machine_types: (n_nodes,), UNKNOWN where nobody says."""

    nodes: tuple[str, ...]
    machine_types: np.ndarray
    micro: Floats
    levels: Levels
    applications: Floats
    series: tuple[str, ...]

    def where(self, is_kept: Bools) -> "NodeMatrix":
        """The nodes for which the mask (n_nodes,) is true."""
        return replace(
            self,
            nodes=tuple(node for node, kept in zip(self.nodes, is_kept, strict=True) if kept),
            machine_types=self.machine_types[is_kept],
            micro=self.micro[is_kept],
            applications=self.applications[is_kept],
        )


def node_matrix(tables: NodeTables, is_counted: Bools, params: ScoreParams) -> NodeMatrix:
    """The microbenchmarks and applications of each node, from the executions of the mask (n_executions,).

    Of the applications only rates count where any is measured: the latency of the same runs mirrors them."""
    own = tables.of_executions(is_counted)
    micro_params = params.model_copy(update={"left_out_aspects": sorted({*params.left_out_aspects, APPLICATION})})
    micro = own.of_aspects(micro_params.left_out_aspects)
    reference = learn_reference(micro, np.ones(tables.n_executions, dtype=bool), micro_params)
    scores = score_nodes(micro, reference, micro_params)
    series, names = _applications(own)
    return NodeMatrix(
        own.nodes,
        np.array([one or UNKNOWN for one in own.machine_types], dtype=object),
        scores.log_scores,
        scores.levels,
        series,
        names,
    )


def _applications(tables: NodeTables) -> tuple[Floats, tuple[str, ...]]:
    columns, names, is_rate = [], [], []
    for table in tables.tables:
        if table.aspect != APPLICATION:
            continue
        medians = group_medians(table.natural, table.nodes, len(tables.nodes)) * table.orientation
        for at, metric in enumerate(table.metrics):
            columns.append(medians[:, at])
            names.append(table.name if len(table.metrics) == 1 else f"{table.name}:{metric}")
            is_rate.append(table.units[at].endswith(PER_SECOND) and table.orientation[at] > 0)
    if any(is_rate):
        columns = [column for column, kept in zip(columns, is_rate, strict=True) if kept]
        names = [name for name, kept in zip(names, is_rate, strict=True) if kept]
    found = np.column_stack(columns) if columns else np.empty((len(tables.nodes), 0))
    return found, tuple(names)
