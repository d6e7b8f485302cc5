"""How soon spoiled results are told, and how often others are flagged: by single flags, and by alarms."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.evaluate.alarms import average_precision, precision_recall
from tasks.nodes.fingerprint.alarm_params import AlarmParams
from tasks.nodes.fingerprint.alarms import watch_nodes
from tasks.nodes.type_tables import Bools, Floats, Ints

MEASURES = (
    "recall",
    "auprc",
    "false_alarms_before_per_1000",
    "false_alarms_other_per_1000",
    "delay_executions",
    "delay_hours",
    "missed",
    "alarm_delay_executions",
    "alarm_delay_hours",
    "alarm_missed",
)
CALM_MEASURES = ("false_alarms_per_1000", "alarms", "alarms_per_node_month")
HOUR_S, MONTH_H = 3600.0, 730.5


@dataclass(frozen=True)
class Verdicts:
    """Tested executions in time order, m of them.

    executions: their rows of the history. scores: (m,), NaN where nothing is said. is_flagged: (m,)."""

    executions: pd.DataFrame
    scores: Floats
    is_flagged: Bools

    @property
    def nodes(self) -> np.ndarray:
        """(m,) names."""
        return self.executions["node"].astype(str).to_numpy(dtype=object)


def spoiled_measures(verdicts: Verdicts, is_spoiled: Bools, params: AlarmParams) -> dict[str, float]:
    """MEASURES by name, NaN where there is nothing to measure. is_spoiled: (m,).

    Delays run from the first spoiled execution of a node to the first of them that is flagged, and to the first alarm
    about the node raised from then on: in executions of that node, and in hours; medians over the nodes where it comes.
    missed: share of the nodes where it never does."""
    names, is_scored = verdicts.nodes, ~np.isnan(verdicts.scores)
    nodes = sorted(set(names[is_spoiled]))
    first = {node: int(np.flatnonzero(is_spoiled & (names == node))[0]) for node in nodes}
    is_before = np.array([at < first.get(node, -1) for at, node in enumerate(names)], dtype=bool)
    is_other = ~np.isin(names, np.array(nodes, dtype=object))
    curve = precision_recall(verdicts.scores[is_scored], is_spoiled[is_scored]) if is_spoiled[is_scored].any() else None
    raised = alarm_rows(verdicts, params)
    flags = [_delay(verdicts, node, first[node], is_spoiled & verdicts.is_flagged) for node in nodes]
    alarms = [_delay(verdicts, node, first[node], _mask(raised, len(names))) for node in nodes]
    return {
        "recall": _share(verdicts.is_flagged[is_spoiled & is_scored]),
        "auprc": average_precision(curve) if curve is not None else np.nan,
        "false_alarms_before_per_1000": 1000 * _share(verdicts.is_flagged[is_before & is_scored]),
        "false_alarms_other_per_1000": 1000 * _share(verdicts.is_flagged[is_other & is_scored]),
        **_delays("", flags),
        **_delays("alarm_", alarms),
    }


def calm_measures(verdicts: Verdicts, params: AlarmParams) -> dict[str, float]:
    """CALM_MEASURES by name, of a history in which nothing was spoiled."""
    n_alarms, months = len(alarm_rows(verdicts, params)), node_months(verdicts)
    return {
        "false_alarms_per_1000": 1000 * _share(verdicts.is_flagged[~np.isnan(verdicts.scores)]),
        "alarms": float(n_alarms),
        "alarms_per_node_month": n_alarms / months if months > 0 else np.nan,
    }


def node_months(verdicts: Verdicts) -> float:
    """Months from the first to the last tested execution of each node, all nodes together."""
    times = _seconds(verdicts.executions)
    spans = pd.Series(times).groupby(verdicts.nodes).agg(lambda own: own.max() - own.min())
    return float(spans.sum() / HOUR_S / MONTH_H)


def alarm_rows(verdicts: Verdicts, params: AlarmParams) -> Ints:
    """The executions that raised an alarm about their node, by the stated rules: numbers from 0 to m, rising."""
    told = verdicts.executions[["node", "aspect", "execution_id", "started_at", "is_contaminated"]].reset_index(
        drop=True
    )
    is_scored = ~np.isnan(verdicts.scores)
    told = told.assign(
        probability=np.where(is_scored, verdicts.is_flagged.astype(np.float64), np.nan), is_flagged=verdicts.is_flagged
    )
    by_verdict = params.model_copy(update={"threshold": 0.0})  # scores of plain detectors are no probabilities
    raised = watch_nodes(told, by_verdict).alarms["raised_by"].tolist()
    place = dict(zip(told["execution_id"].tolist(), range(len(told)), strict=True))
    return np.array(sorted(place[one] for one in raised), dtype=np.int64)


def _delay(verdicts: Verdicts, node: str, first: int, is_told: Bools) -> tuple[float, float]:
    """Executions of the node and hours from a row to the first told one of the node from then on; NaN if none is."""
    own = np.flatnonzero(verdicts.nodes == node)
    told = own[(own >= first) & is_told[own]]
    if not len(told):
        return np.nan, np.nan
    times = _seconds(verdicts.executions)
    n_between = int(((own >= first) & (own < told[0])).sum())
    return float(n_between), float(times[told[0]] - times[first]) / HOUR_S


def _delays(name: str, found: list[tuple[float, float]]) -> dict[str, float]:
    executions, hours = np.array(found, dtype=np.float64).reshape(-1, 2).T
    known = ~np.isnan(executions)
    return {
        f"{name}delay_executions": float(np.median(executions[known])) if known.any() else np.nan,
        f"{name}delay_hours": float(np.nanmedian(hours[known])) if (known & ~np.isnan(hours)).any() else np.nan,
        f"{name}missed": _share(~known),
    }


def _mask(rows: Ints, length: int) -> Bools:
    found = np.zeros(length, dtype=bool)
    found[rows] = True
    return found


def _seconds(executions: pd.DataFrame) -> Floats:
    """(m,) since the epoch, NaN where unknown."""
    elapsed = pd.to_datetime(executions["started_at"]) - pd.Timestamp(0)
    return np.asarray(elapsed.dt.total_seconds().to_numpy(), dtype=np.float64)


def _share(values: Bools) -> float:
    return float(values.mean()) if len(values) else np.nan
