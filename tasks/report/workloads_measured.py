"""What the last training of a source measured, and its last evaluation, as the warehouse keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.report.workloads_confusion import WorkloadConfusion
from tasks.warehouse.connection import Connection

# The champion if it has figures, else the model that was trained last.
MODEL = """
WITH measured AS (
    SELECT DISTINCT model_id FROM workloads.model_figures WHERE source = $source
    UNION SELECT DISTINCT model_id FROM workloads.confusions WHERE source = $source
),
champion AS (
    SELECT model_id FROM ops.champions WHERE word = 'workloads' AND kind = 'identity' AND source = $source
    ORDER BY decided_at DESC, sequence DESC LIMIT 1
),
final AS (
    SELECT measured.model_id, measured.model_id IN (SELECT model_id FROM champion) AS is_champion, models.trained_at
    FROM measured LEFT JOIN ops.models AS models USING (model_id)
)
SELECT model_id FROM final ORDER BY is_champion DESC, trained_at DESC NULLS LAST, model_id LIMIT 1
"""
FIGURES = (
    "SELECT key, value, reason FROM workloads.model_figures WHERE source = $source AND model_id = $model ORDER BY key"
)
CONFUSION = """
    SELECT workload AS actual, identified_as AS predicted, n_runs AS n FROM workloads.confusions
    WHERE source = $source AND model_id = $model ORDER BY ALL
"""
EVALUATION = (
    "SELECT key, value, reason, data_version FROM workloads.evaluation_figures WHERE source = $source ORDER BY key"
)
UNKNOWN = ""  # identified_as of a run that was called none of the known workloads

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """model_id: whose figures and confusion these are, None without any. evaluation: figures of the last evaluation.

    Figures are by key, None with `<key>.reason` beside it where one cannot be had; evaluated_version: data version."""

    model_id: str | None
    figures: Figures
    confusion: WorkloadConfusion | None
    evaluation: Figures
    evaluated_version: str | None


def fetch_measured(connection: Connection, source: str) -> Measured:
    """What was measured in a source."""
    evaluation = connection.execute(EVALUATION, {"source": source}).df()
    version = str(evaluation["data_version"].iloc[0]) if len(evaluation) else None
    told = connection.execute(MODEL, {"source": source}).fetchone()
    if told is None:
        return Measured(None, {}, None, _by_key(evaluation), version)
    asked = {"source": source, "model": str(told[0])}
    figures = _by_key(connection.execute(FIGURES, asked).df())
    confusion = confusion_of_rows(connection.execute(CONFUSION, asked).df(), f"model {told[0]}")
    return Measured(asked["model"], figures, confusion, _by_key(evaluation), version)


def _by_key(rows: pd.DataFrame) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value, reason in zip(rows["key"], rows["value"], rows["reason"], strict=True):
        found[str(key)] = None if pd.isna(value) else float(value)
        if not pd.isna(reason):
            found[f"{key}.reason"] = str(reason)
    return found


def confusion_of_rows(rows: pd.DataFrame, by: str) -> WorkloadConfusion | None:
    """Counts by pair of workloads (actual, predicted, n) as a table; None without any.

    predicted: empty for runs that were called unknown, which then have the last column."""
    if rows.empty:
        return None
    names = sorted({*rows["actual"], *rows["predicted"]} - {UNKNOWN})
    place = {name: at for at, name in enumerate(names)} | {UNKNOWN: len(names)}
    has_unknown = bool((rows["predicted"] == UNKNOWN).any())
    counts = np.zeros((len(names), len(names) + has_unknown), dtype=np.int64)
    for actual, predicted, n in zip(rows["actual"], rows["predicted"], rows["n"], strict=True):
        counts[place[actual], place[predicted]] += int(n)
    return WorkloadConfusion(tuple(names), counts, by)
