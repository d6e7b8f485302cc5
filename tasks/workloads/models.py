"""The model in use for a source, and what trainings and evaluations measured: workloads.model_figures, .confusions and
.evaluation_figures. Imports no training."""

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from tasks.errors import NotFound
from tasks.warehouse.connection import Connection, fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, decisions, folder_of

if TYPE_CHECKING:
    from tasks.workloads.identify.model import Model

WORD = "workloads"
KIND = "identity"
REASON = ".reason"  # ends the key that says why a figure cannot be had
Figures = dict[str, Any]


def champion_of(warehouse: Warehouse, source: str) -> "tuple[ModelCard, Model] | None":
    """The model in use for a source, loaded; None before the first training. Raises BadInput for broken files."""
    from tasks.workloads.identify.model import load_model

    card = champion(warehouse.models, WORD, source, KIND)
    return (card, load_model(folder_of(warehouse.models, WORD, card.model_id))) if card else None


def model_in_use(warehouse: Warehouse, source: str) -> "tuple[ModelCard, Model]":
    """The model in use for a source. Raises NotFound before the first training, BadInput if its files are broken."""
    found = champion_of(warehouse, source)
    if found is None:
        raise NotFound(no_model(source))
    return found


def sources_with_model(warehouse: Warehouse) -> list[str]:
    """The sources that have a model of workloads in use, by name."""
    return sorted({one.source for one in decisions(warehouse.models, WORD) if one.kind == KIND})


def no_model(source: str) -> str:
    """The line for a source without a model."""
    command = shlex.join(["whorl", "workloads", "train", "--source", source])
    return f"source {source!r} has no model of workloads yet; make one with {command}"


def write_training(warehouse: Warehouse, source: str, model_id: str, figures: Figures, confusion: pd.DataFrame) -> None:
    """Write the figures and the confusion of one model; twice changes nothing."""
    about = {"source": source, "model_id": model_id}
    with writing(warehouse) as connection, transaction(connection):
        for table in ("workloads.model_figures", "workloads.confusions"):
            connection.execute(f"DELETE FROM {table} WHERE source = $source AND model_id = $model_id", about).fetchall()
        _insert(connection, "workloads.model_figures", _rows(figures), about)
        _insert(connection, "workloads.confusions", pa.Table.from_pandas(confusion, preserve_index=False), about)


def write_evaluation(warehouse: Warehouse, source: str, figures: Figures, data_version: str) -> None:
    """Put the figures of an evaluation of a source in the place of those of the one before."""
    about = {"source": source}
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("DELETE FROM workloads.evaluation_figures WHERE source = $source", about).fetchall()
        now = datetime.now(UTC).replace(tzinfo=None)
        told = about | {"data_version": data_version, "evaluated_at": now}
        _insert(connection, "workloads.evaluation_figures", _rows(figures), told)


def read_figures(warehouse: Warehouse, source: str, model_id: str) -> Figures:
    """The figures of one model as its training returned them; none for a model that is not known."""
    rows = fetch(
        warehouse,
        "SELECT key, value, reason FROM workloads.model_figures WHERE source = $source AND model_id = $model_id "
        "ORDER BY key",
        {"source": source, "model_id": model_id},
    )
    figures: Figures = {}
    for key, value, reason in rows.itertuples(index=False):
        figures |= {key: float(value)} if pd.notna(value) else {key: None, f"{key}{REASON}": reason}
    return figures


def _rows(figures: Figures) -> pa.Table:
    """One row a number; `<key>.reason` becomes the reason of `<key>`."""
    keys = [key for key in figures if not key.endswith(REASON)]
    numbers = [key for key in keys if figures[key] is None or isinstance(figures[key], int | float)]
    return pa.table(
        {
            "key": pa.array(numbers, pa.string()),
            "value": pa.array([figures[key] for key in numbers], pa.float64()),
            "reason": pa.array([figures.get(key + REASON) for key in numbers], pa.string()),
        }
    )


def _insert(connection: Connection, table: str, rows: pa.Table, about: dict[str, Any]) -> None:
    connection.register("new_rows", rows)
    told = ", ".join(f"${name} AS {name}" for name in about)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT {told}, * FROM new_rows", about).fetchall()
    connection.unregister("new_rows")
