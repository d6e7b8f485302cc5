"""What a trained network makes of the executions and nodes of a source."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.nodes.fingerprint.fingerprints import fingerprints_of
from tasks.nodes.fingerprint.node_scores import calm_executions, log_scores_of, rank_fingerprints
from tasks.nodes.fingerprint.plane import plane_of
from tasks.nodes.history import History
from tasks.nodes.learned.champions import TrainedModel
from tasks.nodes.perona.inputs import inputs_of
from tasks.nodes.ranking import Ranking
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.type_tables import Bools


@dataclass(frozen=True)
class Told:
    """executions: one row a fingerprinted execution: execution_id, log_norm, score (1 is the reference, NaN without
    one), x, y (Figure 4; NaN without a fingerprint), encoding (list of numbers).

    ranking: nodes by fingerprints. shown: share of the variance in x and y."""

    executions: pd.DataFrame
    ranking: Ranking
    shown: float


def fingerprint(history: History, model: TrainedModel, is_flagged: Bools, score: ScoreParams) -> Told:
    """Fingerprints of all executions, and the ranking of the nodes by those that are not flagged, is_flagged (n,)."""
    with threadpool_limits(1):
        inputs = inputs_of(history, model.fitted.scales, model.fitted.network.params)
        prints = fingerprints_of(inputs, model.fitted.network)
    log_scores = log_scores_of(inputs, prints, model.frozen.norms)
    calm = calm_executions(history.executions, inputs, is_flagged)
    plane = plane_of(inputs, prints)
    rows = np.flatnonzero(np.isfinite(prints.log_norm))
    place = plane.points.set_index("execution")[["x", "y"]].reindex(rows)
    executions = pd.DataFrame(
        {
            "execution_id": history.executions["execution_id"].astype(str).to_numpy(dtype=object)[rows],
            "log_norm": prints.log_norm[rows],
            "score": np.exp(log_scores[rows]),
            "x": place["x"].to_numpy(),
            "y": place["y"].to_numpy(),
            "encoding": list(prints.enc[rows]),
        }
    )
    ranking = rank_fingerprints(history.executions, inputs, log_scores, calm, score)
    return Told(executions, ranking, plane.shown)
