"""What the demo shows of nodes: the recording that whorl ships is read and ranked, its executions are judged, and its
nodes watched.

The recorder put stress on a share of the executions. So some of what the detector rightly flags, and an alarm that this
raises, is that stress."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pandas as pd

from flows.forms import call
from flows.node_answer_params import NodePreprocessParams, NodeRankParams
from flows.node_answers import nodes_preprocess, nodes_rank
from flows.node_model_params import NodeFingerprintParams, NodeTrainParams, NodeWatchParams, filled_in
from flows.node_models import nodes_fingerprint, nodes_train
from flows.node_params import NodeIngestParams
from flows.node_watch import nodes_watch
from flows.nodes import nodes_ingest
from tasks import datasets
from tasks.errors import BadInput
from tasks.nodes.answers import read_scores
from tasks.nodes.aspects import is_stressed
from tasks.nodes.node_words import KIND, WORD, called
from tasks.nodes.params import NodesParams
from tasks.nodes.verdict_steps import read_states
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion

UNDISTURBED = "executions-*.parquet"  # beside them may lie the executions that something disturbed
HEALTHY, CLEARED = "healthy", "cleared"
VERDICTS = """
SELECT execution_id, executions.node, executions.aspect, own.is_flagged, executions.is_stressed
FROM nodes.verdicts AS own JOIN nodes.executions AS executions USING (source, execution_id)
WHERE source = $source ORDER BY executions.started_at NULLS LAST, execution_id
"""
EVIDENCE = "SELECT evidence FROM ops.alarms WHERE word = 'nodes' AND source = $source ORDER BY raised_at, alarm_id"


class BestIn(TypedDict):
    """The node at the first place of an aspect, or those that share it, by their names with the word for emulated ones.

    score: of the first of them, as a ratio to the reference fleet."""

    aspect: str
    nodes: list[str]
    score: float


class Degrading(TypedDict):
    """A node that looks degraded in an aspect, or did. state: confirmed, suspected or cleared, since that time (UTC).

    n_flagged: executions behind the alarm; n_stressed: of them those under recorded stress; worst: the metric that
    says so most often. 0 and empty for a cleared one; worst is empty where no metric alone says so."""

    node: str
    aspect: str
    state: str
    since: str
    n_flagged: int
    n_stressed: int
    worst: str


class VerdictsTold(TypedDict):
    """What the detector says. n_judged: executions with a verdict; n_flagged: of them.

    figures: of each execution by what others taught; empty where no stress is known. degrading: nodes and aspects,
    those that need looking at first; cost_share: of the time of a node that its benchmarks took, at the pace of the
    recording, where most; None where nobody knows."""

    model_id: str
    n_judged: int
    n_flagged: int
    figures: dict[str, float]
    degrading: list[Degrading]
    cost_share: float | None


class NodesTold(TypedDict):
    """What was found. best: by the one number first, then by aspect. verdicts: what the detector says, also which node
    is degrading; model_id: of the preprocessing; report: path of the page."""

    n_executions: int
    n_nodes: int
    n_emulated: int
    best: list[BestIn]
    verdicts: VerdictsTold
    model_id: str
    report: str


def tell_nodes(warehouse: Warehouse, nodes: NodesParams, source: str) -> NodesTold:
    """Read the recorded executions; rank their nodes, learn what is normal, say which look degraded. Raises WhorlError.

    A preprocessing and a detector of these very data, and answers that rest on them, are used again."""
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
        verdicts=tell_verdicts(warehouse, nodes, source, names),
        model_id=ranked["model_id"],
        report=ranked["report"],
    )


def tell_verdicts(warehouse: Warehouse, nodes: NodesParams, source: str, names: Mapping[str, str]) -> VerdictsTold:
    """Learn which executions of a source look degraded, judge them, and watch its nodes. Raises WhorlError.

    A detector of these very data, parameters and code, and what it said, are used again. names: of the nodes, as they
    are shown. No node is asked for a fresh benchmark: these are recordings."""
    learned = call(nodes_train, filled_in(NodeTrainParams, nodes, warehouse, source))
    judged = call(nodes_fingerprint, filled_in(NodeFingerprintParams, nodes, warehouse, source))
    call(nodes_watch, filled_in(NodeWatchParams, nodes, warehouse, source, asks_for_benchmarks=False))
    states = read_states(warehouse, source)
    evidence = [json.loads(one) for one in fetch(warehouse, EVIDENCE, {"source": source})["evidence"]]
    cost = states["cost_share"].max()
    return VerdictsTold(
        model_id=judged["model_id"],
        n_judged=judged["n_judged"],
        n_flagged=judged["n_flagged"],
        figures=learned["figures"],
        degrading=degrading(states, evidence, fetch(warehouse, VERDICTS, {"source": source}), names),
        cost_share=None if pd.isna(cost) else float(cost),
    )


def degrading(
    states: pd.DataFrame, evidence: Sequence[Mapping[str, Any]], verdicts: pd.DataFrame, names: Mapping[str, str]
) -> list[Degrading]:
    """The nodes and aspects with an alarm that goes on or was cleared, in the order of the states.

    states: as read_states gives them. evidence: of the alarms of the source. verdicts: in time order, with node,
    aspect, execution_id, is_flagged and is_stressed. names: of the nodes, as they are shown."""
    found = []
    for row in states[states["state"] != HEALTHY].to_dict("records"):
        alarm = _alarm_of(row, evidence)
        behind = _behind(verdicts, alarm) if alarm else verdicts.head(0)
        found.append(
            Degrading(
                node=names.get(str(row["node"]), str(row["node"])),
                aspect=str(row["aspect"]),
                state=str(row["state"]),
                since=f"{row['since']:%Y-%m-%d %H:%M}" if pd.notna(row["since"]) else "",
                n_flagged=len(behind),
                n_stressed=int(is_stressed(behind).sum()),
                worst=str(next(iter(alarm["reasons"]), "")) if alarm else "",
            )
        )
    return found


def _best(rows: list[dict[Any, Any]], names: dict[str, str]) -> list[BestIn]:
    """rows: of the ranking, by aspect, the one number and the best first."""
    found = []
    for aspect in dict.fromkeys(str(row["aspect"]) for row in rows):
        first = [row for row in rows if row["aspect"] == aspect and row["rank"] == 1]
        nodes = [names[str(row["node"])] for row in first]
        found.append(BestIn(aspect=aspect, nodes=nodes, score=float(first[0]["score"])))
    return found


def _alarm_of(state: Mapping[Any, Any], evidence: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The evidence of the alarm that a state is of: by its first execution, or, told before by another model, the
    latest of that node, aspect and state. None for a cleared one."""
    if state["state"] == CLEARED:
        return None
    same = [one for one in evidence if all(one.get(name) == state[name] for name in ("node", "aspect", "state"))]
    exact = [one for one in same if state["since_execution"] == one.get("first_execution")]
    found = exact or same
    return found[-1] if found else None


def _behind(verdicts: pd.DataFrame, alarm: Mapping[str, Any]) -> pd.DataFrame:
    """The flagged executions of the node and aspect of an alarm that goes on, from its first one on."""
    own = verdicts[(verdicts["node"] == alarm["node"]) & (verdicts["aspect"] == alarm["aspect"])]
    is_since = (own["execution_id"] == alarm["first_execution"]).cumsum() > 0
    behind: pd.DataFrame = own[is_since & own["is_flagged"].astype(bool)]
    return behind
