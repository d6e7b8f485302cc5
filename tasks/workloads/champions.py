"""The model in use for a source, loaded: what every question about a run asks. Imports no training."""

import shlex
from typing import TYPE_CHECKING

from tasks.errors import NotFound
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, decisions, folder_of

if TYPE_CHECKING:
    from tasks.workloads.identify.model import Model

WORD = "workloads"
KIND = "identity"


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
