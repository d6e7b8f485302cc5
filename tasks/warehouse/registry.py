"""The model registry: one folder a model, and an append-only list of champions.

models/<word>/<model id>/model.json + weights      the truth; ops.models and ops.champions are its index
models/<word>/<model id>/training.json             a note that may be written later, and is no part of the model
models/<word>/champions.jsonl                      one line a decision, the last of a (source, kind) counts"""

import hashlib
import logging
import os
import shlex
import shutil
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, StringConstraints, ValidationError

from tasks.errors import BadInput, NotFound
from tasks.params import Params, first_fault
from tasks.storage import narrow, private, prove_inside, remove_inside, whole
from tasks.warehouse.connection import Connection, transaction, writing
from tasks.warehouse.faults import storage_faults
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import code_version, insert_row, json_of, now

logger = logging.getLogger(__name__)
MODEL_FILE = "model.json"
CHAMPIONS_FILE = "champions.jsonl"
NOTE_FILE = "training.json"
NO_PART = {MODEL_FILE, NOTE_FILE}  # files of a model's folder that are no part of the model
HALF = ".part"  # ending of a file that was about to be written
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.+=-]*$", max_length=200)]  # it names a folder
ROLLED_BACK = "rolled back from"  # how the reason of such a decision begins
Card = TypeVar("Card", bound=Params)


class ModelCard(Params):
    """What model.json says of a model. metrics are on held-out data; trained_at is UTC without a zone.

    files: name to SHA-256 of all files of the model, as they were registered; None in a card of an earlier version of
    whorl, whose models load without that check (`whorl doctor` names them)."""

    model_config = ConfigDict(ser_json_inf_nan="strings")  # a metric that is not a number must not break the card

    model_id: Id
    word: Id
    source: str
    kind: str
    trained_at: datetime
    run_id: str
    data_version: str
    code_version: str
    seed: int
    parameters: dict[str, Any]
    metrics: dict[str, float]
    files: dict[str, str] | None = None


class Decision(Params):
    """One line of champions.jsonl."""

    source: str
    kind: str
    model_id: Id
    reason: str
    decided_at: datetime


def register(warehouse: Warehouse, card: ModelCard, write_weights: Callable[[Path], None]) -> str:
    """Store a model: weights and card go to a temporary folder that is then renamed; returns the model's id.

    write_weights gets the folder. A model whose id is taken is left as it is."""
    folder = warehouse.models / card.word / card.model_id
    draft = folder.with_name(f".{card.model_id}-{uuid.uuid4().hex}")
    with storage_faults(folder), private():
        narrow(warehouse.models)
        if not folder.exists():
            draft.mkdir(parents=True)
            try:
                write_weights(draft)
                card = card.model_copy(update={"files": _files_in(draft)})
                (draft / MODEL_FILE).write_text(card.model_dump_json(indent=1), encoding="utf-8")
                draft.rename(folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    with writing(warehouse) as connection, transaction(connection):
        index_models(connection, warehouse.models)
    return card.model_id


def read_card(models: Path, word: str, model_id: str) -> ModelCard:
    """The card of one model. Raises NotFound."""
    file = models / word / model_id / MODEL_FILE
    if not file.exists():
        known = ", ".join(card.model_id for card in cards(models) if card.word == word) or "none"
        raise NotFound(f"model {model_id!r} of {word}: not in {models}; there are: {known}")
    return _card(file)


def cards(models: Path, *, is_strict: bool = False) -> list[ModelCard]:
    """All models, by word and training time; a card that is damaged, or that of another folder, is told and left out.

    is_strict: raises BadInput for such a card."""
    readable = []
    for file in models.glob(f"*/[!.]*/{MODEL_FILE}"):
        try:
            readable.append(_card(file))
        except BadInput as error:
            if is_strict:
                raise
            logger.warning("%s", error)
    return sorted(readable, key=lambda card: (card.word, card.trained_at, card.model_id))


def _card(file: Path) -> ModelCard:
    card = _parsed(ModelCard, file, file.read_text(encoding="utf-8"))
    if (card.word, card.model_id) != (file.parents[1].name, file.parent.name):
        problem = f"is the card of model {card.model_id!r} of {card.word!r}"
        raise BadInput(file, problem, "that of the model whose folder it lies in", "move that folder away")
    return card


def folder_of(models: Path, word: str, model_id: str) -> Path:
    """The folder of a model to load, after all of its files were found to be those that were registered.

    Raises NotFound, and BadInput naming a file that was changed, is missing, or was added."""
    card, folder = read_card(models, word, model_id), models / word / model_id
    if card.files is not None and (problem := wrong_file(card, folder)):
        name, what = problem
        back = shlex.join(("whorl", "models", "rollback", word, card.kind, "--source", card.source))
        fix = f"bring it back from a backup, put another into use with '{back}', or train again"
        raise BadInput(folder / name, what, "the files that were registered", fix)
    return folder


def wrong_file(card: ModelCard, folder: Path) -> tuple[str, str] | None:
    """The first file that is not as it was registered, and what is wrong with it; None if there is none."""
    there, registered = _files_in(folder), card.files or {}
    for name in sorted(there.keys() | registered.keys()):
        if name not in there:
            return name, "is missing from the model"
        if name not in registered:
            return name, "was added to the model"
        if there[name] != registered[name]:
            return name, f"has changed since the model was registered (sha256 {there[name][:12]})"
    return None


def _files_in(folder: Path) -> dict[str, str]:
    """SHA-256 of each file of a model, by its path below the folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in NO_PART and path.suffix != HALF]
    return {path.relative_to(folder).as_posix(): _sha256(path) for path in files}


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _parsed(kind: type[Card], file: Path, text: str | bytes) -> Card:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        problem, fix = f"not a {kind.__name__} ({first_fault(error)})", "bring it back from a backup, or move it away"
        raise BadInput(file, problem, "what whorl wrote there", fix) from error


def decisions(models: Path, word: str) -> list[Decision]:
    """All champion decisions of a word, oldest first; a half-written last line does not count."""
    file = models / word / CHAMPIONS_FILE
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []  # bytes: half a line may end in half a letter
    return [_parsed(Decision, file, line) for line in lines]


def champion(models: Path, word: str, source: str, kind: str) -> ModelCard | None:
    """The model in use, or None before the first promotion."""
    model_id = champion_id(models, word, source, kind)
    return read_card(models, word, model_id) if model_id else None


def champion_id(models: Path, word: str, source: str, kind: str) -> str | None:
    """The id of the model in use, also where its card is damaged."""
    return next(reversed(_reigns(models, word, source, kind)), None)


def require_champion(models: Path, word: str, source: str, kind: str, none_yet: str) -> ModelCard:
    """The model in use. Raises NotFound with the line `none_yet` before the first promotion."""
    if card := champion(models, word, source, kind):
        return card
    raise NotFound(none_yet)


def _reigns(models: Path, word: str, source: str, kind: str) -> list[str]:
    """Models in the order in which they came into use, without those that were rolled back; the last is in use."""
    reigns: list[str] = []
    for decision in decisions(models, word):
        if (decision.source, decision.kind) == (source, kind):
            is_back = decision.reason.startswith(ROLLED_BACK) and decision.model_id in reigns[:-1]
            while is_back and reigns[-1] != decision.model_id:
                reigns.pop()
            reigns += [] if reigns[-1:] == [decision.model_id] else [decision.model_id]
    return reigns


def promote(warehouse: Warehouse, word: str, model_id: str, reason: str) -> Decision:
    """Make a model the champion of its source and kind; it stays so if it is. Raises NotFound."""
    card = read_card(warehouse.models, word, model_id)
    return _decide(warehouse, word, card, reason)


def roll_back(warehouse: Warehouse, word: str, source: str, kind: str) -> Decision:
    """Make the champion before the present one the champion again. Raises NotFound if there was none."""
    reigns = _reigns(warehouse.models, word, source, kind)
    if len(reigns) <= 1:
        raise NotFound(f"{word}, source {source}, {kind}: no earlier champion to roll back to")
    card = read_card(warehouse.models, word, reigns[-2])
    return _decide(warehouse, word, card, f"{ROLLED_BACK} {reigns[-1]}")


def _decide(warehouse: Warehouse, word: str, card: ModelCard, reason: str) -> Decision:
    decision = Decision(source=card.source, kind=card.kind, model_id=card.model_id, reason=reason, decided_at=now())
    file = warehouse.models / word / CHAMPIONS_FILE
    with writing(warehouse) as connection:
        made = [
            earlier
            for earlier in decisions(warehouse.models, word)
            if (earlier.source, earlier.kind) == (card.source, card.kind)
        ]
        if made and made[-1].model_id == card.model_id:
            decision = made[-1]  # decided already, perhaps by a process that was killed before it filled the index
        else:
            _drop_half_line(file)
            with storage_faults(file), file.open("a", encoding="utf-8") as lines:
                lines.write(decision.model_dump_json() + "\n")
                lines.flush()
                os.fsync(lines.fileno())
        with transaction(connection):
            index_models(connection, warehouse.models)
    return decision


def _drop_half_line(file: Path) -> None:
    """A writer killed in the middle of a line leaves no line end; the half line goes."""
    if file.exists() and (text := file.read_bytes()) and not text.endswith(b"\n"):
        with whole(file) as draft:
            draft.write_bytes(text[: text.rfind(b"\n") + 1])


def index_models(connection: Connection, models: Path) -> int:
    """Fill ops.models and ops.champions from the folders; returns the number of models."""
    connection.execute("DELETE FROM ops.models; DELETE FROM ops.champions")
    registered = cards(models)
    for card in registered:
        json_texts = {"parameters": json_of(card.parameters), "metrics": json_of(card.metrics)}
        insert_row(connection, "ops.models", card.model_dump(exclude={"files"}) | json_texts)
    for word in sorted(file.parent.name for file in models.glob(f"*/{CHAMPIONS_FILE}")):
        for sequence, decision in enumerate(decisions(models, word), 1):
            insert_row(connection, "ops.champions", {"word": word, "sequence": sequence, **dict(decision)})
    return len(registered)


def remove_model(models: Path, word: str, model_id: str) -> None:
    """Delete the folder of a model in one step: it is renamed first, so that nobody reads half a model.

    Raises WhorlError for a folder that lies elsewhere."""
    folder = models / word / model_id
    prove_inside(models, folder)
    grave = folder.with_name(f".removed-{model_id}-{uuid.uuid4().hex}")
    folder.rename(grave)
    remove_inside(models, grave)


ID_DIGITS = 8


def new_card(
    *,
    word: str,
    source: str,
    kind: str,
    run_id: str,
    data_version: str,
    seed: int,
    parameters: dict[str, Any],
    figures: Mapping[str, Any],
    identity: str,
) -> ModelCard:
    """The card; its id is of kind, data version and `identity`, so the same training gives the same model.

    figures: on held-out data; those that are numbers become the card's metrics, in their order."""
    digest = uuid.uuid5(uuid.NAMESPACE_OID, identity).hex[:ID_DIGITS]
    return ModelCard(
        model_id=f"{kind}-{data_version}-{digest}",
        word=word,
        source=source,
        kind=kind,
        trained_at=now(),
        run_id=run_id,
        data_version=data_version,
        code_version=code_version(),
        seed=seed,
        parameters=parameters,
        metrics={key: float(value) for key, value in figures.items() if isinstance(value, int | float)},
    )
