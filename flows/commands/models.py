"""`whorl models`: the trained models, and which of them is in use."""

from typing import Annotated

import typer

from flows.commands import completion
from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.shown import moment, text
from flows.tables import Column, show_table
from tasks.source_names import checked_source

app = typer.Typer(help="Trained models, and which of them is in use", no_args_is_help=True)

ModelId = Annotated[str, typer.Argument(help="Id of a model", autocompletion=completion.model_ids)]
MOST_METRICS = 3
LISTED = (
    Column("model_id", "model", kind="key"),
    Column("word", "word", kind="name"),
    Column("source", "source", kind="key"),
    Column("kind", "kind", kind="key"),
    Column("is_champion", "in use", lambda is_champion: "yes" if is_champion else "", style=lambda _: "green"),
    Column("trained_at", "trained (UTC)", moment, kind="number", is_extra=True),
    Column("metrics", "figures of its training", lambda all_: _first(all_)),
    Column("data_version", "data version", kind="name", is_extra=True),
)


@app.command("list")
def list_models(context: typer.Context, as_json: Json = False) -> None:
    """List all models; one of each word, source and kind is in use: the champion."""
    from flows.machine_output import show_json
    from tasks.warehouse import registry

    invocation = invocation_of(context)
    folder = invocation.warehouse.models
    cards = registry.cards(folder)
    in_use = {key: registry.champion(folder, *key) for key in {(one.word, one.source, one.kind) for one in cards}}
    champions = {card.model_id for card in in_use.values() if card}
    rows = [{**card.model_dump(exclude={"files"}), "is_champion": card.model_id in champions} for card in cards]
    if as_json:
        show_json({"models": rows})
    elif rows:
        show_table(rows, LISTED)
    else:
        invocation.note(f"{folder}: no model has been trained yet")


@app.command()
def promote(
    context: typer.Context,
    model: ModelId,
    reason: Annotated[str, typer.Option(help="Why, for those who read the list of champions later")] = "by hand",
    as_json: Json = False,
) -> None:
    """Put a model into use; the one before it can be brought back with rollback."""
    from tasks.errors import NotFound
    from tasks.warehouse import registry

    warehouse = invocation_of(context).warehouse
    cards = registry.cards(warehouse.models)
    word = next((card.word for card in cards if card.model_id == model), None)
    if word is None:
        known = ", ".join(card.model_id for card in cards) or "none"
        raise NotFound(f"model {model!r}: not in {warehouse.models}; there are: {known}")
    _tell(registry.promote(warehouse, word, model, reason).model_dump(), as_json=as_json)


@app.command()
def rollback(
    context: typer.Context,
    word: Annotated[str, typer.Argument(help="Word, such as jobs", autocompletion=completion.words)],
    kind: Annotated[str, typer.Argument(help="Kind of model, as 'whorl models list' shows it")],
    source: Annotated[str, typer.Option("--source", "-s", help="Source", autocompletion=completion.sources)],
    as_json: Json = False,
) -> None:
    """Bring back the model that was in use before the present one."""
    from tasks.warehouse import registry

    decision = registry.roll_back(invocation_of(context).warehouse, word, checked_source(source), kind)
    _tell(decision.model_dump(), as_json=as_json)


def _first(metrics: dict[str, float]) -> str:
    """The first few of many metrics; a training puts those that matter most first."""
    told = [f"{key} {metrics[key]:.4g}" for key in list(metrics)[:MOST_METRICS]]
    more = len(metrics) - len(told)
    return ", ".join([*told, *([f"{more:,} more"] if more > 0 else [])])


def _tell(decision: dict[str, object], *, as_json: bool) -> None:
    from flows.machine_output import show_json

    if as_json:
        show_json(decision)
    else:
        kind, source, model = (text(decision[key]) for key in ("kind", "source", "model_id"))
        print(f"{kind} of source {source} is now {model} ({text(decision['reason'])})")
