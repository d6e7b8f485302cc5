"""The ranking of all nodes, and the most suspicious one, as figures and tables."""

import numpy as np
import pandas as pd

from tasks.nodes.component_scores import component_scores
from tasks.nodes.evaluate.figures import Figures
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.ranking import ALL, lacking, rank_nodes
from tasks.nodes.reference_fleet import ReferenceFleet, learn_reference, usual_aspects
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import score_nodes
from tasks.nodes.suspicion import suspicious_nodes
from tasks.nodes.type_tables import Bools, NodeTables

ALL_NODES = "all nodes, their executions without known stress"
NO_SCORE = "no node has a metric that counts in a score"
NO_COMPONENT = "no benchmark varies between nodes"
NONE = "no node stands out by slow executions"


def ranked_nodes(tables: NodeTables, is_calm: Bools, params: EvaluateParams) -> tuple[dict[str, pd.DataFrame], Figures]:
    """Tables `ranking`, `suspicious` and `reference`; figures nodes.best, nodes.best.pc1 and nodes.most_suspicious.

    All of it is from executions without known stress: what stress does to a node says nothing against it. More nodes
    than params.max_ranked have scores without intervals."""
    calm = tables.of_executions(is_calm)
    reference = learn_reference(calm, np.ones(tables.n_executions, dtype=bool), params.score, ALL_NODES)
    if len(tables.nodes) <= params.max_ranked:
        table = rank_nodes(calm, reference, params.score).table
    else:
        table = _without_intervals(calm, reference, params.score)
    suspicious = suspicious_nodes(calm, reference, params.score)
    found = {"ranking": table, "suspicious": suspicious, "reference": reference.table}
    return found, _best(table[table["aspect"] == ALL]) | _most_suspicious(suspicious, params.score.min_executions)


def _without_intervals(calm: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> pd.DataFrame:
    """Nodes by their one number alone."""
    found = score_nodes(calm, reference, params)
    usual = usual_aspects(reference.table)
    lacks = [", ".join(lacking(found.levels, own, usual)) for own in found.levels.by_aspect(found.log_scores)]
    told = {"aspect": ALL, "node": calm.nodes, "machine_type": calm.machine_types, "score": found.overall()}
    table = pd.DataFrame({**told, "lacks": lacks, "pc1": component_scores(found)}).dropna(subset="score")
    table = table.assign(is_part=table["lacks"] != "")
    order = ["is_part", "score", "node"]
    table = table.sort_values(order, ascending=[True, False, True], ignore_index=True).drop(columns="is_part")
    return table.assign(place=np.arange(1, len(table) + 1), low=np.nan, high=np.nan, n_tied=1)


def _best(nodes: pd.DataFrame) -> Figures:
    """The first place by score, and by the first principal component. nodes: the ranking by the one number."""
    first = nodes[nodes["place"] == 1]["node"].tolist()
    figures: Figures = {"nodes.best": ", ".join(map(str, first)) or None}
    if not first:
        figures["nodes.best.reason"] = NO_SCORE
    by_component = nodes.dropna(subset="pc1")
    if not len(by_component):
        return figures | {"nodes.best.pc1": None, "nodes.best.pc1.reason": NO_COMPONENT}
    farthest = int(by_component["pc1"].to_numpy(dtype=np.float64).argmax())
    return figures | {"nodes.best.pc1": str(by_component["node"].iloc[farthest])}


def _most_suspicious(suspicious: pd.DataFrame, min_executions: int) -> Figures:
    if len(suspicious) and suspicious["stands_out"].iloc[0]:
        return {"nodes.most_suspicious": str(suspicious["node"].iloc[0])}
    reason = NONE if len(suspicious) else f"no node ran a benchmark {min_executions} times"
    return {"nodes.most_suspicious": None, "nodes.most_suspicious.reason": reason}
