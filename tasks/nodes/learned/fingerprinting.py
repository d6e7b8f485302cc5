"""What a trained model says of the executions and nodes of a source."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.fingerprint.fingerprint_params import AskingParams
from tasks.nodes.fingerprint.fingerprints import Fingerprints, fingerprints_of
from tasks.nodes.fingerprint.machine_time import machine_time
from tasks.nodes.fingerprint.node_scores import calm_executions, log_scores_of, rank_fingerprints
from tasks.nodes.fingerprint.plane import Plane, plane_of
from tasks.nodes.fingerprint.reasons import reasons_of
from tasks.nodes.history import History
from tasks.nodes.learned.asking import Asked, ask
from tasks.nodes.learned.champions import TrainedModel
from tasks.nodes.ranking import Ranking
from tasks.nodes.score_params import ScoreParams


@dataclass(frozen=True)
class Told:
    """executions: one row a fingerprinted execution: execution_id, log_norm, score (1 is the reference, NaN without
    one), probability (NaN where nothing can be said, as of the first ones of a node by the paper's variant) and
    is_flagged (false there), n_predecessors, x, y (Figure 4; NaN without a fingerprint), encoding (list of numbers).

    reasons: execution_id, place, metric, deviation, measured, expected, is_beside_others; of flagged ones.
    ranking: nodes by fingerprints. cost: machine_time of each node. shown: share of the variance in x and y."""

    executions: pd.DataFrame
    reasons: pd.DataFrame
    ranking: Ranking
    cost: pd.DataFrame
    shown: float


def fingerprint(history: History, model: TrainedModel, params: AskingParams, score: ScoreParams) -> Told:
    """Fingerprints, verdicts and their reasons of all executions, and the ranking of the nodes."""
    asked = ask(history, model, params)
    network = model.fitted.network
    prints = fingerprints_of(asked.inputs, network)
    log_scores = log_scores_of(asked.inputs, prints, model.frozen.norms)
    calm = calm_executions(history.executions, asked.inputs, asked.judged.is_flagged)
    flagged = np.flatnonzero(asked.judged.is_flagged)
    said = reasons_of(asked.inputs, network, flagged, asked.judged.predecessors, model.frozen.usual, params)
    ids = history.executions["execution_id"].astype(str).to_numpy(dtype=object)
    plane = plane_of(asked.inputs, prints)
    return Told(
        executions=_executions(ids, asked, prints, log_scores, plane),
        reasons=said.assign(execution_id=ids[said["execution"].to_numpy(dtype=np.int64)]).drop(columns="execution"),
        ranking=rank_fingerprints(history.executions, asked.inputs, log_scores, calm, score),
        cost=machine_time(history.executions),
        shown=plane.shown,
    )


def _executions(
    ids: np.ndarray, asked: Asked, prints: Fingerprints, log_scores: np.ndarray, plane: Plane
) -> pd.DataFrame:
    """One row an execution that has a fingerprint."""
    judged = asked.judged
    rows = np.flatnonzero(np.isfinite(prints.log_norm))
    place = plane.points.set_index("execution")[["x", "y"]].reindex(rows)
    return pd.DataFrame(
        {
            "execution_id": ids[rows],
            "log_norm": prints.log_norm[rows],
            "score": np.exp(log_scores[rows]),
            "probability": judged.probability[rows],
            "is_flagged": judged.is_flagged[rows],
            "n_predecessors": (judged.predecessors[rows] >= 0).sum(axis=1),
            "x": place["x"].to_numpy(),
            "y": place["y"].to_numpy(),
            "encoding": list(prints.enc[rows]),
        }
    )
