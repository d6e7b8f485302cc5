"""Which nodes look worse than they used to: executions far below the node's own earlier level, or a level that fell."""

import numpy as np
import pandas as pd

from tasks.nodes.group_medians import SD_OF_MAD, group_medians, within_deviation
from tasks.nodes.reference_fleet import ReferenceFleet
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import execution_scores
from tasks.nodes.type_tables import Bools, Floats, Ints, NodeTables

DEVIATIONS = 3.5  # robust deviations below a node's own level: Iglewicz & Hoaglin 1993
COLUMNS = ["node", "machine_type", "n_executions", "n_low", "low_share", "worst_type", "worst_ratio"]


def suspicious_nodes(tables: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> pd.DataFrame:
    """One row a node, the most suspicious first: node, machine_type, n_executions, n_low (executions more than 3.5
    robust deviations of their type below the node's own level), low_share, worst_type (with most of them), worst_ratio
    (their median score over that level; NaN without a low one).

    The level is the median of the first half of the node's executions of a type, so that a node that got worse for good
    does not become its own measure. Deviations are within the halves: those of the type, or of the node itself where it
    varies more than the others. Fewer executions than twice min_executions are not halved. tables: of executions
    without known stress, in time order. Nodes with fewer than min_executions of a type are not judged by it, and left
    out if there is no other."""
    parts = []
    for table in tables.of_aspects(params.left_out_aspects).tables:
        scores = execution_scores(table, reference, params)
        kept = ~np.isnan(scores)
        if not kept.any():
            continue
        nodes = table.nodes[kept]
        n_own, is_early = _early(nodes, 2 * params.min_executions)
        apart, deviation = _fallen(scores[kept], nodes, is_early, len(tables.nodes))
        is_judged = n_own >= params.min_executions
        is_low = (apart < -DEVIATIONS * deviation) & (deviation > 0)
        rows = {"node": nodes, "type": table.name, "apart": apart, "is_low": is_low}
        parts.append(pd.DataFrame(rows)[is_judged])
    found = [_of_node(tables, int(number), own) for number, own in _each_node(parts)]
    listed = pd.DataFrame(found, columns=COLUMNS)
    order = ["low_share", "worst_ratio", "node"]
    return listed.sort_values(order, ascending=[False, True, True], ignore_index=True)


def _fallen(scores: Floats, nodes: Ints, is_early: Bools, n_nodes: int) -> tuple[Floats, Floats]:
    """How far each score lies from the early level of its node, and the deviation of one score there: (n,) each."""
    halves = 2 * nodes + is_early
    levels = group_medians(scores[is_early, None], nodes[is_early], n_nodes)[:, 0]
    within = within_deviation(scores[:, None], halves, 2 * n_nodes)[0]
    apart = np.abs(scores - group_medians(scores[:, None], halves, 2 * n_nodes)[halves, 0])
    own = SD_OF_MAD * group_medians(apart[:, None], nodes, n_nodes)[:, 0]
    return scores - levels[nodes], np.fmax(own, within)[nodes]


def _early(nodes: Ints, least: int) -> tuple[Ints, Bools]:
    """How many rows the node of each row has, and which rows are of its first half; all of fewer than least. (n,)"""
    place = pd.Series(nodes).groupby(nodes).cumcount().to_numpy(dtype=np.int64)
    n_own = np.bincount(nodes)[nodes]
    return n_own, (2 * place < n_own) | (n_own < least)


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
