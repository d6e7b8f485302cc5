"""What the demo shows of nodes: the recording that whorl ships is read, ranked, learned and watched."""

from typing import Any, TypedDict

from flows.forms import call
from flows.node_answer_params import NodePreprocessParams, NodeRankParams
from flows.node_answers import nodes_preprocess, nodes_rank
from flows.node_model_demo import LearnedTold, tell_learned
from flows.node_model_params import filled_in
from flows.node_params import NodeIngestParams
from flows.nodes import nodes_ingest
from tasks import datasets
from tasks.errors import BadInput
from tasks.nodes.answer_rows import read_scores
from tasks.nodes.model_names import KIND, WORD
from tasks.nodes.node_words import called
from tasks.nodes.params import NodesParams
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion

UNDISTURBED = "executions-*.parquet"  # beside them may lie the executions that something disturbed


class BestIn(TypedDict):
    """The node at the first place of an aspect, or those that share it, by their names with the word for emulated ones.

    score: of the first of them, as a ratio to the reference fleet."""

    aspect: str
    nodes: list[str]
    score: float


class NodesTold(TypedDict):
    """What was found. best: by the one number first, then by aspect. learned: what Perona's model says, also which node
    is degrading; model_id: of the preprocessing; report: path of the page."""

    n_executions: int
    n_nodes: int
    n_emulated: int
    best: list[BestIn]
    learned: LearnedTold
    model_id: str
    report: str


def tell_nodes(warehouse: Warehouse, nodes: NodesParams, source: str) -> NodesTold:
    """Read the recorded executions; rank their nodes, learn what is normal, say which look degraded. Raises WhorlError.

    A preprocessing and a model of these very data, and answers that rest on them, are used again."""
    recorded = datasets.RECORDED / WORD
    paths = [str(path) for path in sorted(recorded.glob(UNDISTURBED))]
    if not paths:
        raise BadInput(recorded, "no recording of nodes", UNDISTURBED, "bring the files back")
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
