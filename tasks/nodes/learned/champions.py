"""A trained model as a folder of files, and the one in use for a source."""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from tasks.errors import BadInput
from tasks.nodes.evaluate.network import FittedModel
from tasks.nodes.fingerprint.node_scores import NormReference
from tasks.nodes.learned.names import KIND, LEARNED, WORD
from tasks.nodes.perona.inputs import load_inputs, save_inputs
from tasks.nodes.perona.network import load_network, save_network
from tasks.params import Params
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, folder_of

FINGERPRINT = "fingerprint.json"
FORMAT, VERSION = "whorl.nodes.fingerprint", 3


class Frozen(Params):
    """What a training fixed beside the weights. threshold: probability above which an execution is flagged."""

    threshold: float
    norms: NormReference


@dataclass(frozen=True)
class TrainedModel:
    """fitted: network and scales. learned: ids of the executions that it was fitted to; chosen: those that epoch and
    threshold were chosen on."""

    fitted: FittedModel
    frozen: Frozen
    learned: frozenset[str]
    chosen: frozenset[str]


def save_trained(model: TrainedModel, folder: Path) -> None:
    """Write the files of a model; nothing in them is code."""
    save_inputs(model.fitted.scales, folder)
    save_network(model.fitted.network, {}, folder)
    main = {"format": FORMAT, "version": VERSION, **model.frozen.model_dump(mode="json")}
    (folder / FINGERPRINT).write_text(json.dumps(main, indent=1, allow_nan=False), encoding="utf-8")
    ids = sorted(model.learned | model.chosen)
    table = pa.table({"execution_id": ids, "is_learned": [one in model.learned for one in ids]})
    pq.write_table(table, folder / LEARNED, compression="zstd")


def load_trained(folder: Path) -> TrainedModel:
    """What save_trained wrote. Raises BadInput for files that are missing, damaged or foreign."""
    scales = load_inputs(folder)
    network, _ = load_network(folder)
    try:
        main = json.loads((folder / FINGERPRINT).read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.pop("format", None), main.pop("version", None)) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        frozen = Frozen.model_validate(main)
        table = pq.read_table(folder / LEARNED, columns=["execution_id", "is_learned"]).to_pandas()
    except (OSError, ValueError, ValidationError, pa.ArrowException) as error:
        problem = f"no model of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what 'whorl nodes train' wrote", "train again") from error
    is_learned = table["is_learned"].to_numpy(dtype=bool)
    ids = table["execution_id"].astype(str)
    fitted = FittedModel(scales, network, frozen.threshold)
    return TrainedModel(fitted, frozen, frozenset(ids[is_learned]), frozenset(ids[~is_learned]))


def trained_in_use(warehouse: Warehouse, source: str) -> tuple[ModelCard, TrainedModel] | None:
    """The model in use for a source, loaded; None before the first training. Raises BadInput for broken files."""
    card = champion(warehouse.models, WORD, source, KIND)
    return (card, load_trained(folder_of(warehouse.models, WORD, card.model_id))) if card else None
