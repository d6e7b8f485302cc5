"""The model in use for a source, and what trainings and evaluations measured: workloads.model_figures, .confusions and
.evaluation_figures. Imports no training."""

import shlex
from typing import TYPE_CHECKING, TypedDict

import pandas as pd

from tasks.report.evaluation import REASON, Figures, rows_of
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, decisions, folder_of, require_champion
from tasks.warehouse.sources import now, replace_rows

if TYPE_CHECKING:
    from tasks.workloads.identify.model import Model

WORD = "workloads"
KIND = "identity"


class TrainedModel(TypedDict):
    """model_id: of the new model; champion_id: of the one in use now; accuracy: of the new one on held-out runs.

    held_out: what was held out, such as `round 5`."""

    model_id: str
    champion_id: str
    data_version: str
    accuracy: float
    held_out: str


def champion_of(warehouse: Warehouse, source: str) -> "tuple[ModelCard, Model] | None":
    """The model in use for a source, loaded; None before the first training. Raises BadInput for broken files."""
    return model_in_use(warehouse, source) if champion(warehouse.models, WORD, source, KIND) else None


def model_in_use(warehouse: Warehouse, source: str) -> "tuple[ModelCard, Model]":
    """The model in use for a source. Raises NotFound before the first training, BadInput if its files are broken."""
    from tasks.workloads.identify.model import load_model

    card = require_champion(warehouse.models, WORD, source, KIND, no_model(source))
    return card, load_model(folder_of(warehouse.models, WORD, card.model_id))


def sources_with_model(warehouse: Warehouse) -> list[str]:
    """The sources that have a model of workloads in use, by name."""
    return sorted({decision.source for decision in decisions(warehouse.models, WORD) if decision.kind == KIND})


def no_model(source: str) -> str:
    """The line for a source without a model."""
    command = shlex.join(["whorl", "workloads", "train", "--source", source])
    return f"source {source!r} has no model of workloads yet; make one with {command}"


def write_training(warehouse: Warehouse, source: str, model_id: str, figures: Figures, confusion: pd.DataFrame) -> None:
    """Write the figures and the confusion of one model; twice changes nothing."""
    about = {"source": source, "model_id": model_id}
    frames = {"model_figures": rows_of(figures), "confusions": confusion}
    replace_rows(warehouse, WORD, about, frames, within=tuple(about))


def write_evaluation(warehouse: Warehouse, source: str, figures: Figures, data_version: str) -> None:
    """Put the figures of an evaluation of a source in the place of those of the one before."""
    about = {"source": source, "data_version": data_version, "evaluated_at": now()}
    replace_rows(warehouse, WORD, about, {"evaluation_figures": rows_of(figures)})


def read_figures(warehouse: Warehouse, source: str, model_id: str) -> Figures:
    """The figures of one model as its training returned them; none for a model that is not known."""
    rows = fetch(
        warehouse,
        "SELECT key, value, reason FROM workloads.model_figures WHERE source = $source AND model_id = $model_id "
        "ORDER BY key",
        {"source": source, "model_id": model_id},
    )
    return by_key(rows)


def by_key(rows: pd.DataFrame) -> Figures:
    """Figures from their rows (key, value, reason)."""
    figures: Figures = {}
    for key, value, reason in zip(rows["key"], rows["value"], rows["reason"], strict=True):
        figures |= {key: float(value)} if pd.notna(value) else {key: None, f"{key}{REASON}": reason}
    return figures
