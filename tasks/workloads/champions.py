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
MACHINE_KIND = "identity-machine"  # on the machine's counters alone: for runs without a control group of their own


def champion_of(warehouse: Warehouse, source: str, kind: str = KIND) -> "tuple[ModelCard, Model] | None":
    """The model in use for a source, loaded; None before the first training. Raises BadInput for broken files."""
    from tasks.workloads.identify.saving import load_model

    card = champion(warehouse.models, WORD, source, kind)
    return (card, load_model(folder_of(warehouse.models, WORD, card.model_id))) if card else None


def models_in_use(warehouse: Warehouse, source: str) -> "list[tuple[ModelCard, Model]]":
    """The model in use for a source and, where there is one, its twin on the machine's counters alone.

    Raises NotFound before the first training, BadInput if the files of one are broken."""
    found = champion_of(warehouse, source)
    if found is None:
        raise NotFound(no_model(source))
    twin = champion_of(warehouse, source, MACHINE_KIND)
    return [found, twin] if twin else [found]


def sources_with_model(warehouse: Warehouse) -> list[str]:
    """The sources that have a model of workloads in use, by name."""
    return sorted({one.source for one in decisions(warehouse.models, WORD) if one.kind == KIND})


def no_model(source: str) -> str:
    """The line for a source without a model."""
    command = shlex.join(["whorl", "workloads", "train", "--source", source])
    return f"source {source!r} has no model of workloads yet; make one with {command}"
