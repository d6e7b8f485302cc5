"""Runs of flows, kept in ops.runs so that they can be listed and compared."""

import json
import math
from datetime import datetime
from typing import Any, Literal

import pandas as pd

from tasks.errors import NotFound
from tasks.params import Params
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import code_version, data_version


class RunRecord(Params):
    """One run of a flow: what it was asked and what it found. Times are UTC without a zone."""

    run_id: str
    flow: str
    word: str
    source: str
    status: Literal["completed", "failed"]
    started_at: datetime
    ended_at: datetime
    parameters: dict[str, Any]
    figures: dict[str, Any]


def record_run(warehouse: Warehouse, run: RunRecord) -> str:
    """Write one run, or write it again after a retry; returns its id."""
    code = code_version()
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("DELETE FROM ops.runs WHERE run_id = ?", [run.run_id])
        connection.execute(
            "INSERT INTO ops.runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                run.run_id,
                run.flow,
                run.word,
                run.source,
                run.status,
                run.started_at,
                run.ended_at,
                _json(run.parameters),
                _json(run.figures),
                data_version(connection, run.word, run.source),
                code,
            ],
        )
    return run.run_id


def list_runs(warehouse: Warehouse, *, limit: int = 20) -> pd.DataFrame:
    """The latest runs, newest first."""
    return fetch(
        warehouse,
        "SELECT run_id, flow, source, status, started_at, date_diff('millisecond', started_at, ended_at) / 1000.0 "
        "AS runtime_s, data_version, code_version FROM ops.runs ORDER BY started_at DESC, run_id LIMIT $limit",
        {"limit": limit},
    )


def read_run(warehouse: Warehouse, run_id: str) -> dict[str, Any]:
    """One run by its id or a unique beginning of it, with parameters and figures.

    Raises NotFound if there is none, or more than one."""
    found = fetch(
        warehouse,
        "SELECT * FROM ops.runs WHERE starts_with(run_id, $id) ORDER BY run_id <> $id, run_id LIMIT 5",
        {"id": run_id},
    )
    if run_id in found["run_id"].array:
        found = found[:1]  # its full id, which others may begin with
    if len(found) != 1:
        near = ", ".join(found["run_id"]) or "none"
        raise NotFound(f"run {run_id!r}: {len(found)} runs begin so ({near}); 'whorl runs list' shows them all")
    run = {str(key): value for key, value in found.iloc[0].to_dict().items()}
    return {**run, "parameters": json.loads(run["parameters"]), "figures": json.loads(run["figures"])}


def compare_runs(warehouse: Warehouse, first: str, second: str) -> pd.DataFrame:
    """Where two runs differ: key, and the value in each; numbers also as a ratio (second over first)."""
    sides = [_flat(read_run(warehouse, run_id)) for run_id in (first, second)]
    rows = []
    for key in sorted(set(sides[0]) | set(sides[1])):
        left, right = sides[0].get(key), sides[1].get(key)
        if left != right:
            rows.append({"key": key, "first": left, "second": right, "ratio": _ratio(left, right)})
    return pd.DataFrame(rows, columns=["key", "first", "second", "ratio"])


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {k: v for key, inner in value.items() for k, v in _flat(inner, f"{prefix}{key}.").items()}
    return {prefix.removesuffix("."): value}


def _json(values: dict[str, Any]) -> str:
    """JSON with null for what is not a finite number, which JSON does not know."""
    return json.dumps(_known(values), sort_keys=True, default=str, allow_nan=False)


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _known(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_known(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _ratio(left: Any, right: Any) -> float | None:
    is_numeric = all(isinstance(side, int | float) and not isinstance(side, bool) for side in (left, right))
    return right / left if is_numeric and left else None
