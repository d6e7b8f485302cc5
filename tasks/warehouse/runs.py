"""Runs of flows, kept in ops.runs so that they can be listed and compared."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import pandas as pd

from tasks.errors import BadSetting, NotFound
from tasks.params import Params
from tasks.quantities import LEFT_OUT
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import code_version, data_version, insert_row, json_of


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
    columns = {"parameters": json_of(run.parameters), "figures": json_of(run.figures), "code_version": code}
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("DELETE FROM ops.runs WHERE run_id = ?", [run.run_id])
        version = data_version(connection, run.word, run.source)
        insert_row(connection, "ops.runs", {**vars(run), **columns, "data_version": version})
    return run.run_id


def list_runs(warehouse: Warehouse, *, limit: int = 20) -> pd.DataFrame:
    """The latest runs, newest first."""
    return fetch(
        warehouse,
        "SELECT run_id, flow, source, status, started_at, date_diff('millisecond', started_at, ended_at) / 1000.0 "
        "AS runtime_s, data_version, code_version FROM ops.runs ORDER BY started_at DESC, run_id LIMIT $limit",
        {"limit": limit},
    )


BEGIN_SO = """
    SELECT run_id FROM ops.runs WHERE starts_with(run_id, $head) AND ends_with(run_id, $tail)
    ORDER BY run_id <> $head, started_at DESC, run_id
"""
LATEST = "'whorl runs list' shows the latest"
N_NAMED = 5  # ids that an error message names


def run_id_of(warehouse: Warehouse, text: str) -> str:
    """The id of the one run that is called so or whose id begins so, or is shown so in a narrow table (BEGIN…END).

    Raises BadSetting if nothing is asked for, NotFound if no run or more than one fits."""
    refuse_blank(text, f"run {text!r}: expected its id or the beginning of it; {LATEST}")
    head, _, tail = text.partition(LEFT_OUT)
    run_ids = fetch(warehouse, BEGIN_SO, {"head": head, "tail": tail})["run_id"].to_list()
    return only_id(run_ids, text, f"run {text!r}: no run of this home begins so; {LATEST}")


def refuse_blank(text: str, none: str) -> None:
    """Raises BadSetting for an id of which nothing is given: any would fit."""
    if not text.replace(LEFT_OUT, "").strip():
        raise BadSetting(none)


def only_id(ids: list[str], text: str, none: str, what: str = "run") -> str:
    """The id that is the text, which stands first then, or the only one that begins so. Raises NotFound."""
    if not ids:
        raise NotFound(none)
    if len(ids) > 1 and ids[0] != text:
        rest = f" and {len(ids) - N_NAMED:,} more" if len(ids) > N_NAMED else ""
        names = ", ".join(ids[:N_NAMED])
        raise NotFound(f"{what} {text!r}: {len(ids):,} {what}s begin so: {names}{rest}; give more of the id")
    return str(ids[0])


def read_run(warehouse: Warehouse, text: str) -> dict[str, Any]:
    """One run by its id or the beginning of it, with parameters and figures. Raises as run_id_of."""
    values = {"id": run_id_of(warehouse, text)}
    [run] = fetch(warehouse, "SELECT * FROM ops.runs WHERE run_id = $id", values).to_dict("records")
    row = {str(key): value for key, value in run.items()}
    return {**row, "parameters": json.loads(run["parameters"]), "figures": json.loads(run["figures"])}


# Which way a figure is better, by a word of its name; that of the last word counts.
LOWER = ("crps", "brier", "loss", "mae", "mse", "error", "ks", "false", "regret", "width90")
HIGHER = ("accuracy", "f1", "auprc", "auroc", "covering", "score", "spearman", "recall", "precision", "hit")
NO_SETTING = ("run_id", "started_at", "ended_at", "code_version", "parameters.warehouse.", "figures.report")


def compare_runs(warehouse: Warehouse, run_ids: Sequence[str]) -> pd.DataFrame:
    """Where runs differ, a row a parameter or figure: `key`, a column a run by its id, and `best`, the id of the best.

    Times, paths and the version of the code are left out. best: of figures that are known to be better the lower or
    the higher they are (LOWER, HIGHER); "" for others, and where several are equally good. Raises NotFound as
    read_run."""
    sides = {run_id: _flat(read_run(warehouse, run_id)) for run_id in run_ids}
    rows = []
    for key in sorted(set().union(*sides.values())):
        values = {run_id: side.get(key) for run_id, side in sides.items()}
        is_setting = not key.startswith(NO_SETTING) and not any(_is_path(value) for value in values.values())
        if is_setting and any(value != values[run_ids[0]] for value in values.values()):
            rows.append({"key": key, **values, "best": _best(key, values)})
    return pd.DataFrame(rows, columns=["key", *run_ids, "best"])


def _best(key: str, values: Mapping[str, Any]) -> str:
    words = [word for word in re.split(r"[._]", key) if word in LOWER or word in HIGHER]
    numbers = {run_id: value for run_id, value in values.items() if _is_number(value)}
    if not key.startswith("figures.") or not words or len(numbers) < 2:
        return ""
    best = (min if words[-1] in LOWER else max)(numbers.values())
    run_ids = [run_id for run_id, value in numbers.items() if value == best]
    return run_ids[0] if len(run_ids) == 1 else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_path(value: Any) -> bool:
    """Whether it is a path, or a list of nothing else."""
    values = value if isinstance(value, list) and value else [value]
    return all(isinstance(one, str) and one.startswith("/") for one in values)


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {k: v for key, inner in value.items() for k, v in _flat(inner, f"{prefix}{key}.").items()}
    return {prefix.removesuffix("."): value}
