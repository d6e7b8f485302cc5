"""The preprocessing in use for a source, loaded: what every answer about a node rests on."""

from dataclasses import dataclass
from pathlib import Path

from tasks.nodes.model_names import KIND, WORD
from tasks.nodes.preprocess.fitted import Preprocessor
from tasks.nodes.preprocess.saving import load_preprocessor, save_preprocessor
from tasks.nodes.reference_fleet import ReferenceFleet
from tasks.nodes.saved_reference import load_reference, save_reference
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, folder_of

PREPROCESSOR, REFERENCE = "preprocessor.json", "reference.json"


@dataclass(frozen=True)
class InUse:
    """A model: what became of each metric, and what nodes are measured against."""

    card: ModelCard
    preprocessor: Preprocessor
    reference: ReferenceFleet


def champion_of(warehouse: Warehouse, source: str) -> InUse | None:
    """The model in use for a source, loaded; None before the first preprocessing. Raises BadInput for broken files."""
    card = champion(warehouse.models, WORD, source, KIND)
    if card is None:
        return None
    folder = folder_of(warehouse.models, WORD, card.model_id)
    return InUse(card, load_preprocessor(folder / PREPROCESSOR), load_reference(folder / REFERENCE))


def save(preprocessor: Preprocessor, reference: ReferenceFleet, folder: Path) -> None:
    """Write the files of a model."""
    save_preprocessor(preprocessor, folder / PREPROCESSOR)
    save_reference(reference, folder / REFERENCE)
