"""Explanations as rows of the warehouse: written anew for a source as a whole, and read back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasks.jobs.explain.explaining import RunReasons
from tasks.jobs.explain.insights import Insight
from tasks.jobs.explain.params import ExplainParams
from tasks.jobs.explain.whole_source import SourceReasons
from tasks.jobs.shape_params import Kind
from tasks.warehouse.connection import Connection, reading, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

WORD = "jobs"
ORDERS = {"cause_families": "question, rank", "cause_checks": "order_name, cause", "insights": "kind, rank"}
OF_RUN = ("source", "run_id", "group_key", "model_id", "runtime_s", "usual_s", "expected_s")
OF_REASON = ("family", "feature", "value", "typical", "compared_with", "factor")


@dataclass(frozen=True)
class Explained:
    """The rows of a source: of jobs.cause_families, jobs.cause_checks, jobs.insights, and what they are of."""

    source: str
    model_id: str
    data_version: str
    families: pd.DataFrame
    checks: pd.DataFrame
    insights: pd.DataFrame


def write_source(warehouse: Warehouse, source: str, found: SourceReasons, params: ExplainParams) -> None:
    """Write families, checks and insights of a source anew, in one transaction; twice changes nothing."""
    frames = {
        "cause_families": found.families.assign(rank=found.families.groupby("question").cumcount() + 1),
        "cause_checks": found.check,
        "insights": pd.DataFrame([row for kind, some in found.insights.items() for row in _insight_rows(kind, some)]),
    }
    parameters = json.dumps(params.model_dump(mode="json"), sort_keys=True)
    with writing(warehouse) as connection, transaction(connection):
        made_of = {"data_version": data_version(connection, WORD, source), "parameters": parameters}
        for name, rows in (*frames.items(), ("explanations", pd.DataFrame([made_of]))):
            _replace(connection, name, source, rows.assign(source=source, model_id=found.model_id))


def write_reasons(warehouse: Warehouse, source: str, found: Sequence[RunReasons]) -> int:
    """Write the reasons of a source anew, in one transaction; returns the number of rows."""
    rows = [row for one in found for row in reason_rows(one)]
    with writing(warehouse) as connection, transaction(connection):
        _replace(connection, "reasons", source, pd.DataFrame(rows))
    return len(rows)


def read_source(warehouse: Warehouse, source: str, model_id: str) -> Explained | None:
    """What write_source wrote, if it was of this model and the present files; else None."""
    asked = {"source": source}
    with reading(warehouse) as connection:
        sql = "SELECT model_id, data_version FROM jobs.explanations WHERE source = $source"
        version = data_version(connection, WORD, source)
        if connection.execute(sql, asked).fetchone() != (model_id, version):
            return None
        frames = [
            connection.execute(f"SELECT * FROM jobs.{name} WHERE source = $source ORDER BY {order}", asked).df()
            for name, order in ORDERS.items()
        ]
    return Explained(source, model_id, version, *frames)


def reason_rows(found: RunReasons) -> list[dict[str, Any]]:
    """The reasons of one run as rows of jobs.reasons."""
    same = {name: getattr(found, name) for name in OF_RUN}
    return [
        {
            **same,
            "question": question,
            "rank": rank,
            "words": one.text,
            **{name: getattr(one, name) for name in OF_REASON},
        }
        for question, explanation in (("runtime", found.runtime), ("variation", found.variation))
        for rank, one in enumerate(explanation.reasons if explanation else (), 1)
    ]


def _insight_rows(kind: Kind, insights: Sequence[Insight]) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "rank": rank,
            "insight": one.name,
            "words": one.words,
            "verdict": one.verdict,
            "rho": one.model.value,
            "low": one.model.low,
            "high": one.model.high,
            "measured_rho": one.measured.value if one.measured else None,
            "measured_low": one.measured.low if one.measured else None,
            "measured_high": one.measured.high if one.measured else None,
            "measured_verdict": one.measured_verdict,
            "n_runs": one.model.n_runs,
            "reason": one.reason,
        }
        for rank, one in enumerate(insights, 1)
    ]


def _replace(connection: Connection, name: str, source: str, rows: pd.DataFrame) -> None:
    connection.execute(f"DELETE FROM jobs.{name} WHERE source = $source", {"source": source})
    if len(rows):
        connection.register("new_rows", rows)
        connection.execute(f"INSERT INTO jobs.{name} BY NAME SELECT * FROM new_rows")
        connection.unregister("new_rows")
