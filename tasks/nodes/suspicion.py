"""Which nodes look worse than they used to: executions far below the node's own level, and a level that fell."""

import numpy as np
import pandas as pd

from tasks.nodes.group_medians import group_medians, within_deviation
from tasks.nodes.reference_fleet import ReferenceFleet
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import execution_scores
from tasks.nodes.type_tables import NodeTables

DEVIATIONS = 3.5  # robust deviations below a node's own median: Iglewicz & Hoaglin 1993
COLUMNS = ["node", "machine_type", "n_executions", "n_low", "low_share", "worst_type", "worst_ratio"]


def suspicious_nodes(tables: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> pd.DataFrame:
    """One row a node, the most suspicious first: node, machine_type, n_executions, n_low (executions more than 3.5
    robust deviations of their type below the node's own median), low_share, worst_type (with most of them), worst_ratio
    (their median score over that of the node; NaN without a low one).

    Nodes with fewer than min_executions of a type are not judged by that type, and left out if there is no other."""
    parts = []
    for table in tables.of_aspects(params.left_out_aspects).tables:
        scores = execution_scores(table, reference, params)
        medians = group_medians(scores[:, None], table.nodes, len(tables.nodes))
        apart = scores - medians[table.nodes, 0]
        deviation = within_deviation(scores[:, None], table.nodes, len(tables.nodes))[0]
        sizes = np.bincount(table.nodes[~np.isnan(scores)], minlength=len(tables.nodes))
        is_judged = ~np.isnan(apart) & (sizes[table.nodes] >= params.min_executions)
        is_low = is_judged & (apart < -DEVIATIONS * deviation) & (deviation > 0)
        rows = {"node": table.nodes, "type": table.name, "apart": apart, "is_low": is_low}
        parts.append(pd.DataFrame(rows)[is_judged])
    found = [_of_node(tables, int(number), own) for number, own in _each_node(parts)]
    listed = pd.DataFrame(found, columns=COLUMNS)
    order = ["low_share", "worst_ratio", "node"]
    return listed.sort_values(order, ascending=[False, True, True], ignore_index=True)


def _each_node(parts: list[pd.DataFrame]) -> list[tuple[int, pd.DataFrame]]:
    judged = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return [(int(number), own) for number, own in judged.groupby("node")] if len(judged) else []  # type: ignore[arg-type]


def _of_node(tables: NodeTables, number: int, own: pd.DataFrame) -> tuple[object, ...]:
    low = own[own["is_low"]]
    worst_type, worst_ratio = "", np.nan
    if len(low):
        worst_type = str(low["type"].value_counts().index[0])
        worst_ratio = float(np.exp(low["apart"][low["type"] == worst_type].median()))
    told = (tables.nodes[number], tables.machine_types[number], len(own), len(low))
    return (*told, len(low) / len(own), worst_type, worst_ratio)
