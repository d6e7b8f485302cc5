"""Explanations as rows of the warehouse: written anew for a source as a whole, and read back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasks.jobs.explain.causes import CausesCheck
from tasks.jobs.explain.explaining import RunReasons
from tasks.jobs.explain.insights import insights_table
from tasks.jobs.explain.params import ExplainParams
from tasks.jobs.explain.reasons import Explanation
from tasks.jobs.explain.whole_source import SourceReasons
from tasks.warehouse.connection import Connection, reading, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

WORD = "jobs"
OF_SOURCE = ("cause_families", "cause_checks", "insights")
ALL, EVEN = "all", "even"
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
    families = found.families.assign(rank=found.families.groupby("question").cumcount() + 1)
    frames = {
        "cause_families": families,
        "cause_checks": check_rows(found.check) if found.check else pd.DataFrame(),
        "insights": insight_rows(found),
    }
    with writing(warehouse) as connection, transaction(connection):
        for name in OF_SOURCE:
            _replace(connection, name, source, frames[name].assign(source=source, model_id=found.model_id))
        version = data_version(connection, WORD, source)
        made_of = {"model_id": found.model_id, "data_version": version, "parameters": _text(params)}
        _replace(connection, "explanations", source, pd.DataFrame([{"source": source, **made_of}]))


def write_reasons(warehouse: Warehouse, source: str, found: Sequence[RunReasons]) -> int:
    """Write the reasons of a source anew, in one transaction; returns the number of rows."""
    rows = [row for one in found for row in reason_rows(one)]
    with writing(warehouse) as connection, transaction(connection):
        _replace(connection, "reasons", source, pd.DataFrame(rows))
    return len(rows)


def read_source(warehouse: Warehouse, source: str, model_id: str, params: ExplainParams) -> Explained | None:
    """What write_source wrote, if it was of this model, these parameters and the present files; else None."""
    with reading(warehouse) as connection:
        asked = {"source": source}
        row = connection.execute(
            "SELECT model_id, data_version, parameters FROM jobs.explanations WHERE source = $source", asked
        ).fetchone()
        if row != (model_id, data_version(connection, WORD, source), _text(params)):
            return None
        orders = {"cause_families": "question, rank", "cause_checks": "order_name, cause", "insights": "kind, rank"}
        frames = [
            connection.execute(f"SELECT * FROM jobs.{name} WHERE source = $source ORDER BY {orders[name]}", asked).df()
            for name in OF_SOURCE
        ]
    return Explained(source, model_id, str(row[1]), *frames)


def reason_rows(found: RunReasons) -> list[dict[str, Any]]:
    """The reasons of one run as rows of jobs.reasons."""
    same = {name: getattr(found, name) for name in ("source", "run_id", "group_key", "model_id")}
    times = {name: getattr(found, name) for name in ("runtime_s", "usual_s", "expected_s")}
    questions: dict[str, Explanation | None] = {"runtime": found.runtime, "variation": found.variation}
    return [
        {
            **same,
            "question": question,
            "rank": rank,
            **{name: getattr(one, name) for name in OF_REASON},
            "words": one.text,
            **times,
        }
        for question, explanation in questions.items()
        for rank, one in enumerate(explanation.reasons if explanation else (), 1)
    ]


def check_rows(check: CausesCheck) -> pd.DataFrame:
    """A check as rows of jobs.cause_checks, empty without a run to check: order_name, cause, mrr, low, high, n."""
    if check.mrr.value is None or check.random is None:
        return pd.DataFrame()
    value, leads = check.mrr.value, {"importance": check.importance, "frequency": check.frequency}
    rows: list[dict[str, Any]] = [
        {"order_name": "reasons", "cause": ALL, "mrr": value, "low": check.mrr.low, "high": check.mrr.high},
        {"order_name": "random", "cause": ALL, "mrr": check.random, "low": None, "high": None},
        {"order_name": "reasons", "cause": EVEN, "mrr": check.even, "low": None, "high": None},
        {"order_name": "frequency", "cause": EVEN, "mrr": check.even_frequency, "low": None, "high": None},
    ]
    for name, lead in leads.items():
        rows.append(
            {"order_name": name, "cause": ALL, "mrr": value - (lead.value or 0.0), "low": lead.low, "high": lead.high}
        )
    for one in check.by_cause:
        for name, mrr in (("reasons", one.mrr), ("importance", one.importance)):
            rows.append(
                {"order_name": name, "cause": one.cause, "mrr": mrr, "low": None, "high": None, "n": one.n_runs}
            )
    return pd.DataFrame(rows).fillna({"n": check.n_runs}).astype({"low": float, "high": float, "n": "int64"})


def insight_rows(found: SourceReasons) -> pd.DataFrame:
    """Insights as rows of jobs.insights, without source and model."""
    tables = [
        insights_table(some).assign(kind=kind, rank=range(1, len(some) + 1)) for kind, some in found.insights.items()
    ]
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, ignore_index=True).rename(columns={"name": "insight", "measured": "measured_rho"})
    return table.drop(columns=["expected", "n_groups", "features"])


def _replace(connection: Connection, name: str, source: str, rows: pd.DataFrame) -> None:
    connection.execute(f"DELETE FROM jobs.{name} WHERE source = $source", {"source": source})
    if len(rows):
        connection.register("new_rows", rows)
        connection.execute(f"INSERT INTO jobs.{name} BY NAME SELECT * FROM new_rows")
        connection.unregister("new_rows")


def _text(params: ExplainParams) -> str:
    return json.dumps(params.model_dump(mode="json"), sort_keys=True)
