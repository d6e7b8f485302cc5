"""What the demo shows of Perona's model of recorded nodes: what it flags, which node is degrading, what that costs."""

import json
from collections.abc import Mapping
from typing import TypedDict

import pandas as pd

from flows.forms import call
from flows.node_model_params import NodeFingerprintParams, NodeTrainParams, NodeWatchParams, filled_in
from flows.node_models import nodes_fingerprint, nodes_train
from flows.node_verdicts_demo import Degrading, OfDose, by_dose, degrading
from flows.node_watch import nodes_watch
from tasks.nodes.learned.names import LEARNED, WORD
from tasks.nodes.learned.rows import read_states
from tasks.nodes.params import NodesParams
from tasks.nodes.perona.params import ModelParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import folder_of

MOST_EPOCHS = 20
LEFT_TO_VARIANT = 0  # as batch size, learning rate and mined vectors: ours then takes few large steps
VERDICTS = """
SELECT execution_id, executions.node, executions.aspect, own.is_flagged, executions.is_stressed, executions.dose_level
FROM nodes.fingerprints AS own JOIN nodes.executions AS executions USING (source, execution_id)
WHERE source = $source ORDER BY executions.started_at NULLS LAST, execution_id
"""
EVIDENCE = "SELECT evidence FROM ops.alarms WHERE word = 'nodes' AND source = $source ORDER BY raised_at, alarm_id"


class LearnedTold(TypedDict):
    """What the model in use says. n_executions: that have a fingerprint; n_flagged: of them.

    unseen: those that it neither learned nor was chosen by; degrading: nodes and aspects, those that need looking at
    first; cost_share: of the time of a node that its benchmarks took, at the pace of the recording, where most; None
    where nobody knows."""

    model_id: str
    n_executions: int
    n_flagged: int
    unseen: list[OfDose]
    degrading: list[Degrading]
    cost_share: float | None


def tell_learned(warehouse: Warehouse, nodes: NodesParams, source: str, names: Mapping[str, str]) -> LearnedTold:
    """Learn the executions of a source, say which of them look degraded, and watch its nodes. Raises WhorlError.

    A model of these very data, parameters and code, and what it said, are used again. names: of the nodes, as they are
    shown. No node is asked for a fresh benchmark: these are recordings."""
    fast = quick(nodes.model)
    call(nodes_train, filled_in(NodeTrainParams, nodes, warehouse, source, as_in_use=False, model=fast))
    found = call(nodes_fingerprint, filled_in(NodeFingerprintParams, nodes, warehouse, source))
    call(nodes_watch, filled_in(NodeWatchParams, nodes, warehouse, source, asks_for_benchmarks=False))
    verdicts = fetch(warehouse, VERDICTS, {"source": source})
    seen = pd.read_parquet(folder_of(warehouse.models, WORD, found["model_id"]) / LEARNED, columns=["execution_id"])
    states = read_states(warehouse, source)
    evidence = [json.loads(one) for one in fetch(warehouse, EVIDENCE, {"source": source})["evidence"]]
    cost = states["cost_share"].max()
    return LearnedTold(
        model_id=found["model_id"],
        n_executions=found["n_fingerprints"],
        n_flagged=found["n_flagged"],
        unseen=by_dose(verdicts[~verdicts["execution_id"].isin(seen["execution_id"])]),
        degrading=degrading(states, evidence, verdicts, names),
        cost_share=None if pd.isna(cost) else float(cost),
    )


def quick(model: ModelParams) -> ModelParams:
    """The parameters with few epochs of large steps, for a first look; the network stays."""
    epochs = min(model.fit.epochs_in(model.variant), MOST_EPOCHS)
    steps = {"epochs": epochs, "batch_size": LEFT_TO_VARIANT, "learning_rate": float(LEFT_TO_VARIANT)}
    loss = model.loss.model_copy(update={"mined_per_type": LEFT_TO_VARIANT})
    return model.model_copy(update={"fit": model.fit.model_copy(update=steps), "loss": loss})
