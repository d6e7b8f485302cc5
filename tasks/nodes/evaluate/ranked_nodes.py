"""The ranking of all nodes, and the most suspicious one, as figures and tables."""

import numpy as np
import pandas as pd

from tasks.nodes.evaluate.figures import Figures
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.ranking import rank_nodes
from tasks.nodes.reference_fleet import learn_reference
from tasks.nodes.scores import score_nodes
from tasks.nodes.suspicion import suspicious_nodes
from tasks.nodes.type_tables import Bools, NodeTables

ALL_NODES = "all nodes, their executions without known stress"
NO_SCORE = "no node has a metric that counts in a score"


def ranked_nodes(tables: NodeTables, is_calm: Bools, params: EvaluateParams) -> tuple[dict[str, pd.DataFrame], Figures]:
    """Tables `ranking`, `suspicious` and `reference`, and the figures nodes.best and nodes.most_suspicious.

    The ranking is from executions without known stress; suspicion looks at all. More nodes than params.max_ranked have
    scores without intervals."""
    calm = tables.of_executions(is_calm)
    reference = learn_reference(calm, np.ones(tables.n_executions, dtype=bool), params.score, ALL_NODES)
    if len(tables.nodes) <= params.max_ranked:
        table = rank_nodes(calm, reference, params.score).table
    else:
        scores = score_nodes(calm, reference, params.score).overall()
        found = {"aspect": "all", "node": tables.nodes, "machine_type": tables.machine_types, "score": scores}
        table = pd.DataFrame(found).dropna(subset="score")
        table = table.sort_values(["score", "node"], ascending=[False, True], ignore_index=True)
        table = table.assign(place=np.arange(1, len(table) + 1), low=np.nan, high=np.nan, n_tied=1)
    suspicious = suspicious_nodes(tables, reference, params.score)
    first = table[(table["aspect"] == "all") & (table["place"] == 1)]["node"].tolist()
    figures: Figures = {"nodes.best": ", ".join(map(str, first)) or None}
    figures["nodes.most_suspicious"] = str(suspicious["node"].iloc[0]) if len(suspicious) else None
    if not first:
        figures["nodes.best.reason"] = NO_SCORE
    if not len(suspicious):
        figures["nodes.most_suspicious.reason"] = f"no node ran a benchmark {params.score.min_executions} times"
    return {"ranking": table, "suspicious": suspicious, "reference": reference.table}, figures
