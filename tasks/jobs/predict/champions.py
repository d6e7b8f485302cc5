"""The model in use for a source, loaded: what every question about the next run asks. Imports no training."""

import shlex

from tasks.errors import NotFound
from tasks.jobs.predict.trained import Trained, load_trained
from tasks.warehouse.connection import require
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, folder_of

WORD, KIND = "jobs", "runtime"


def champion_of(warehouse: Warehouse, source: str) -> tuple[ModelCard, Trained] | None:
    """The model in use for a source, loaded; None before the first training."""
    card = champion(warehouse.models, WORD, source, KIND)
    return (card, load_trained(folder_of(warehouse.models, WORD, card.model_id))) if card else None


def needed_champion(warehouse: Warehouse, source: str) -> tuple[ModelCard, Trained]:
    """The same. Raises NoWarehouse, NotFound before the first training, BadInput if its files are broken."""
    require(warehouse)
    found = champion_of(warehouse, source)
    if found is None:
        raise NotFound(no_model(source))
    return found


def no_model(source: str) -> str:
    """The line for a source without a model."""
    command = shlex.join(["whorl", "jobs", "train", "--source", source])
    return f"source {source!r} has no trained model yet; make one with {command}"
