"""What a training came to, kept beside its model: the same training a second time has nothing to learn. Light."""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.errors import BadInput
from tasks.nodes.learned.names import KIND, WORD
from tasks.params import Params
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import NOTE_FILE, champion, folder_of
from tasks.warehouse.versions import code_version


def training_key(source: str, version: str, *params: Params) -> str:
    """The same for the same data, parameters and code. version: of the data of the source."""
    asked = [one.model_dump(mode="json") for one in params]
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{source}\n{version}\n{code_version()}\n{asked}").hex


def remember(warehouse: Warehouse, key: str, found: Mapping[str, Any]) -> None:
    """Keep what a training came to. found: with `model_id`, whose folder it is kept in.

    Call it when the model is in use or was found to be no better: what was stopped before is done again."""
    file = warehouse.models / WORD / found["model_id"] / NOTE_FILE
    draft = file.with_suffix(".part")
    draft.write_text(json.dumps({"key": key, "found": dict(found)}, allow_nan=False), encoding="utf-8")
    draft.replace(file)


def remembered(warehouse: Warehouse, source: str, key: str) -> dict[str, Any] | None:
    """What the training of that key came to, champion_id being the model in use now; None where it has to be made.

    That is so too where no model is in use or its files are broken: a training is what mends it. Of several models of
    one key the one in use is meant."""
    found = {one["model_id"]: one for file in _kept(warehouse) if (one := _of_key(file, key))}
    card = champion(warehouse.models, WORD, source, KIND) if found else None
    if card is None:
        return None
    from tasks.nodes.learned.champions import load_trained

    try:
        load_trained(folder_of(warehouse.models, WORD, card.model_id))
    except BadInput:
        return None
    return {**found.get(card.model_id, next(reversed(found.values()))), "champion_id": card.model_id}


def _kept(warehouse: Warehouse) -> list[Path]:
    """The kept ones of all models, the latest last."""
    files = (warehouse.models / WORD).glob(f"*/{NOTE_FILE}")
    return sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.parent.name))


def _of_key(file: Path, key: str) -> dict[str, Any] | None:
    """What is kept in a file, if it has that key; a file that is damaged, or of another model, has none."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        is_meant = content["key"] == key and content["found"]["model_id"] == file.parent.name
        return dict(content["found"]) if is_meant else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
