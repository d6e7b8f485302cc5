"""Figures of detection: `detect.<measure>.<detector>[.<protocol>][.dose_<level>]`; without a protocol: by time."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from tasks.nodes.aspects import type_names
from tasks.nodes.evaluate.alarms import MEASURES, measures_of, precision_recall
from tasks.nodes.evaluate.detection import Detection
from tasks.nodes.evaluate.figures import Figures, put, put_mean
from tasks.nodes.evaluate.splits import PROTOCOLS, Protocol

PLAIN_PROTOCOL: Protocol = "chronological"
DOSES = (1, 2, 3)
NO_DOSE = "no tested execution was stressed at this dose, or none was not stressed"
NO_EPISODE = "no episode of stress was found"
ANY = "any"


def detection_results(
    executions: pd.DataFrame, found: Detection, detectors: Sequence[str]
) -> tuple[Figures, dict[str, pd.DataFrame]]:
    """The figures, and tables `detection` (one row a protocol, round, detector and dose) and `precision_recall`."""
    judged = _with_truth(executions, found.judged)
    rows = list(_measured(judged))
    table = pd.DataFrame(rows, columns=["protocol", "round", "detector", "dose", "n", "n_stressed", *MEASURES])
    figures: Figures = {}
    for protocol in PROTOCOLS:
        own = table[table["protocol"] == protocol]
        tested = judged[judged["protocol"] == protocol].drop_duplicates(["round", "execution"])
        suffix = _suffix(protocol)
        put(figures, f"detect.n{suffix}", len(tested) // max(1, tested["round"].nunique()), found.reasons[protocol])
        for detector in detectors:
            for dose in (ANY, *(f"dose_{level}" for level in DOSES)):
                _put_all(figures, own, detector, dose, suffix, found.reasons[protocol])
    return figures, {"detection": table, "precision_recall": _curves(judged)}


def _put_all(figures: Figures, own: pd.DataFrame, detector: str, dose: str, suffix: str, reason: str) -> None:
    mine = own[(own["detector"] == detector) & (own["dose"] == dose)]
    slice_ = f"{suffix}.{dose}" if dose != ANY else suffix
    for measure in MEASURES:
        told = reason or (NO_DOSE if not len(mine) else NO_EPISODE)
        put_mean(figures, f"detect.{measure}.{detector}{slice_}", mine[measure].tolist(), told)


def _suffix(protocol: Protocol) -> str:
    return "" if protocol == PLAIN_PROTOCOL else f".{protocol}"


def _with_truth(executions: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """With is_stressed, dose_level and series (node and type) of each execution, in time order within a detector."""
    if judged.empty:
        return judged.assign(is_stressed=False, dose_level=0, series=0)
    truth = pd.DataFrame(
        {
            "is_stressed": executions["is_stressed"].astype("boolean").fillna(False).astype(bool),
            "dose_level": executions["dose_level"].astype("Float64").fillna(0).astype(int),
            "series": pd.factorize(executions["node"].astype(str) + "\n" + type_names(executions))[0],
        }
    )
    of = judged["execution"].to_numpy(dtype=np.int64)
    joined = pd.concat([judged.reset_index(drop=True), truth.iloc[of].reset_index(drop=True)], axis=1)
    return joined.sort_values(["protocol", "round", "detector", "execution"], kind="stable", ignore_index=True)


def _measured(judged: pd.DataFrame) -> Iterator[dict[str, object]]:
    """One row a protocol, round, detector and dose. At a dose: all normal executions, and those stressed with it."""
    for (protocol, number, detector), own in judged.groupby(["protocol", "round", "detector"], sort=False):
        for dose in (ANY, *DOSES):
            used = own if dose == ANY else own[~own["is_stressed"] | (own["dose_level"] == dose)]
            stressed = used["is_stressed"].to_numpy(dtype=bool)
            if not stressed.any() or stressed.all():
                continue
            told = measures_of(
                used["score"].to_numpy(dtype=np.float64),
                used["is_flagged"].to_numpy(dtype=bool),
                stressed,
                used["series"].to_numpy(),
            )
            about = {"protocol": protocol, "round": number, "detector": detector}
            about |= {
                "dose": dose if dose == ANY else f"dose_{dose}",
                "n": len(used),
                "n_stressed": int(stressed.sum()),
            }
            yield {**about, **told}


def _curves(judged: pd.DataFrame) -> pd.DataFrame:
    """Precision over recall: protocol, round, detector, threshold, precision, recall, n_flagged."""
    parts = []
    for (protocol, _, detector), own in judged.groupby(["protocol", "round", "detector"], sort=False):
        stressed = own["is_stressed"].to_numpy(dtype=bool)
        if stressed.any():
            curve = precision_recall(own["score"].to_numpy(dtype=np.float64), stressed)
            parts.append(curve.assign(protocol=str(protocol), round=own["round"].iloc[0], detector=str(detector)))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
