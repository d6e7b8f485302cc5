"""What the demo shows of nodes: the recording that whorl ships is read, ranked, learned and watched."""

from pathlib import Path
from typing import Any, TypedDict

from flows.forms import call
from flows.node_answer_params import NodePreprocessParams, NodeRankParams
from flows.node_answers import nodes_preprocess, nodes_rank
from flows.node_model_demo import LearnedTold, tell_learned
from flows.node_model_params import filled_in
from flows.node_params import NodeIngestParams
from flows.nodes import nodes_ingest
from tasks.errors import BadInput
from tasks.nodes.answer_rows import read_scores, read_watched
from tasks.nodes.model_names import KIND, WORD
from tasks.nodes.node_words import called
from tasks.nodes.params import NodesParams
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / WORD
UNDISTURBED = "executions-*.parquet"  # beside them may lie the executions that something disturbed
OVERALL = "all"  # the aspect of the one number of a node


class BestIn(TypedDict):
    """The node at the first place of an aspect, or those that share it, by their names with the word for emulated ones.

    score: of the first of them, as a ratio to the reference fleet."""

    aspect: str
    nodes: list[str]
    score: float


class Suspicious(TypedDict):
    """The node of which most executions lie far below its own earlier level. n_executions: that were judged.

    worst_type: benchmark with most of them, and there worst_ratio: their median over that level."""

    node: str
    low_share: float
    n_executions: int
    worst_type: str
    worst_ratio: float


class NodesTold(TypedDict):
    """What was found. best: by the one number first, then by aspect; most_suspicious: None where no execution lies far
    below the earlier level of its own node. learned: what Perona's model says; model_id: of the preprocessing; report:
    path of the page."""

    n_executions: int
    n_nodes: int
    n_emulated: int
    best: list[BestIn]
    most_suspicious: Suspicious | None
    learned: LearnedTold
    model_id: str
    report: str


def tell_nodes(warehouse: Warehouse, nodes: NodesParams, source: str) -> NodesTold:
    """Read the recorded executions; rank their nodes, learn what is normal, say which look degraded. Raises WhorlError.

    A preprocessing and a model of these very data, and answers that rest on them, are used again."""
    paths = [str(path) for path in sorted(RECORDED.glob(UNDISTURBED))]
    if not paths:
        raise BadInput(RECORDED, "no recording of nodes", UNDISTURBED, "bring the files back")
    read = call(nodes_ingest, filled_in(NodeIngestParams, nodes, warehouse, source, results=paths))
    in_use = champion(warehouse.models, WORD, source, KIND)
    if in_use is None or in_use.data_version != read["data_version"]:
        call(nodes_preprocess, filled_in(NodePreprocessParams, nodes, warehouse, source))
    ranked = call(nodes_rank, filled_in(NodeRankParams, nodes, warehouse, source))
    rows = read_scores(warehouse, source).to_dict("records")
    names = {str(row["node"]): called(str(row["node"]), row["is_emulated"]) for row in rows}
    return NodesTold(
        n_executions=ranked["n_executions"],
        n_nodes=len(names),
        n_emulated=len({row["node"] for row in rows if row["is_emulated"]}),
        best=_best(rows, names),
        most_suspicious=_most_suspicious(read_watched(warehouse, source).to_dict("records"), names),
        learned=tell_learned(warehouse, nodes, source, names),
        model_id=ranked["model_id"],
        report=ranked["report"],
    )


def _best(rows: list[dict[Any, Any]], names: dict[str, str]) -> list[BestIn]:
    """rows: of the ranking, by aspect, the one number and the best first."""
    found = []
    for aspect in dict.fromkeys(str(row["aspect"]) for row in rows):
        first = [row for row in rows if row["aspect"] == aspect and row["rank"] == 1]
        nodes = [names[str(row["node"])] for row in first]
        found.append(BestIn(aspect=aspect, nodes=nodes, score=float(first[0]["score"])))
    return found


def _most_suspicious(watched: list[dict[Any, Any]], names: dict[str, str]) -> Suspicious | None:
    """watched: the most suspicious first."""
    if not watched or not watched[0]["n_low"]:
        return None
    first = watched[0]
    return Suspicious(
        node=names.get(str(first["node"]), str(first["node"])),
        low_share=float(first["low_share"]),
        n_executions=int(first["n_executions"]),
        worst_type=str(first["worst_type"]),
        worst_ratio=float(first["worst_ratio"]),
    )
