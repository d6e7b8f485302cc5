"""`whorl runs` and `whorl models`: what flows were asked and found, and which model is in use."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from flows.cli.invocation import (
    Json,
    invocation_of,
    offered_model_ids,
    offered_run_ids,
    offered_sources,
    offered_words,
    run_flow,
)
from flows.cli.output import figure, moment, records, setting, show_facts, show_json, show_table
from tasks.choices import checked_source
from tasks.quantities import counted, duration
from tasks.report.result import Column, as_text, columns, extra

if TYPE_CHECKING:
    from tasks.warehouse.place import Warehouse

RunId = Annotated[str, Argument(help="Id of a run, or its beginning", autocompletion=offered_run_ids)]
RUNS = columns(
    ("run_id", "run", "key"), ("flow", "flow", "name"), ("source", "source", "key"),
    Column("status", "status", kind="name", style=lambda status: "red" if status == "failed" else "green"),
    ("started_at", "started (UTC)", moment), ("runtime_s", "took", duration),
    *extra(("data_version", "data version", "name"), ("code_version", "code version", "name")),
)  # fmt: skip
NODES = columns(("node", "node", "name"), ("said", "what it says"))

BEGIN_SO = """
    SELECT run_id FROM ops.runs WHERE starts_with(run_id, $id) ORDER BY run_id <> $id, started_at DESC, run_id
"""
LATEST = "'whorl runs list' shows the latest"
N_LETTERS = 26
N_NAMED = 5  # ids that an error message names


def pipeline(
    context: typer.Context,
    source: Annotated[
        list[str] | None, Option(help="Only this source; once for each", autocompletion=offered_sources)
    ] = None,
    word: Annotated[
        list[str] | None, Option(help="Only the nodes of this word; once for each", show_default=False)
    ] = None,
    trials: Annotated[int, Option(min=0, help="Trials of the search for Perona's network; 0: no search")] = 0,
    network: Annotated[bool, Option(help="Train Perona's network, which makes fingerprints")] = True,
    as_json: Json = False,
) -> None:
    """Go from files to answers, of all words as one graph.

    What lies in the inboxes is read; then each source is preprocessed, learned, fingerprinted, clustered and answered.
    Only what has changed is done: data, settings, code, or what an earlier run had made and is gone."""
    invocation = invocation_of(context)
    own = {"sources": tuple(source or ()), "trials": trials, "trains_network": network}
    found = run_flow(
        invocation, "whorl-pipeline", invocation.settings, **own, **({"words": tuple(word)} if word else {})
    )
    if as_json:
        show_json(found)
        return
    rows = [{"node": name, "said": said} for name, said in found["said"].items()]
    show_table(rows, NODES)
    print(f"\n{counted(found['n_done'], 'node')} of {found['n_nodes']} done, the others were as they are")


def list_runs(
    context: typer.Context,
    top: Annotated[int, Option(min=1, help="How many, the latest first")] = 20,
    as_json: Json = False,
) -> None:
    """List the latest runs."""
    from tasks.warehouse import runs

    invocation = invocation_of(context)
    rows = records(runs.list_runs(invocation.warehouse, limit=top))
    if as_json:
        show_json({"runs": rows})
    elif rows:
        show_table(rows, RUNS)
    else:
        invocation.note("no flow has run yet in this home")


def show(context: typer.Context, run: RunId, as_json: Json = False) -> None:
    """Show one run: parameters, figures, versions."""
    from tasks.settings import leaves
    from tasks.warehouse import runs

    warehouse = invocation_of(context).warehouse
    found = runs.read_run(warehouse, one_run(warehouse, run))
    if as_json:
        return show_json(found)
    facts = {key: moment(value) if key.endswith("_at") else as_text(value) for key, value in found.items()}
    facts["took"] = duration((found["ended_at"] - found["started_at"]).total_seconds())
    for part, show_value in (("figures", figure), ("parameters", setting)):
        del facts[part]
        facts |= {f"{part}.{key}": show_value(value) for key, value in leaves(found[part]).items()}
    show_facts(facts)


def compare(
    context: typer.Context,
    run: Annotated[
        list[str], Argument(metavar="RUN...", help="Ids of runs, or how they begin", autocompletion=offered_run_ids)
    ],
    as_json: Json = False,
) -> None:
    """Show where runs differ: parameters, and figures with the best marked by *.

    Times and paths are left out. For a notebook: compare_runs of tasks.warehouse.runs gives the same as a frame."""
    from tasks.errors import BadSetting
    from tasks.warehouse import runs

    invocation = invocation_of(context)
    ids = list(dict.fromkeys(one_run(invocation.warehouse, one) for one in run))
    if len(run) < 2:
        raise BadSetting("runs: one alone; expected two or more to compare")
    rows: list[dict[str, Any]] = records(runs.compare_runs(invocation.warehouse, ids))
    if as_json:
        told = [{"key": row["key"], "values": [row[one] for one in ids], "best": row["best"] or None} for row in rows]
        return show_json({"runs": ids, "differences": told})
    if not rows:
        invocation.note("the runs differ in nothing")
        return
    names = {one: chr(ord("A") + at) if at < N_LETTERS else str(at + 1) for at, one in enumerate(ids)}
    show_facts({name: one for one, name in names.items()})
    print()
    shown = [
        {"key": row["key"]} | {one: f"{figure(row[one])}{' *' if row['best'] == one else ''}" for one in ids}
        for row in rows
    ]
    show_table(shown, (Column("key", "differs in"), *(Column(one, name, kind="number") for one, name in names.items())))
    invocation.note(f"{counted(len(rows), 'difference')}; * the best")


def one_run(warehouse: "Warehouse", text: str) -> str:
    """The id of the one run that is called so or whose id begins so.

    Raises BadSetting if nothing is asked for, NotFound if no run or more than one fits."""
    from tasks.errors import BadSetting, NotFound
    from tasks.warehouse.connection import fetch

    if not text.strip():
        raise BadSetting(f"run {text!r}: expected its id or the beginning of it; {LATEST}")
    found = fetch(warehouse, BEGIN_SO, {"id": text})["run_id"].to_list()
    if not found:
        raise NotFound(f"run {text!r}: no run of this home begins so; {LATEST}")
    if len(found) > 1 and found[0] != text:
        rest = f" and {len(found) - N_NAMED:,} more" if len(found) > N_NAMED else ""
        names = ", ".join(found[:N_NAMED])
        raise NotFound(f"run {text!r}: {len(found):,} runs begin so: {names}{rest}; give more of the id")
    return str(found[0])


ModelId = Annotated[str, Argument(help="Id of a model", autocompletion=offered_model_ids)]
MOST_METRICS = 3
MODELS = columns(
    ("model_id", "model", "key"), ("word", "word", "name"), ("source", "source", "key"),
    ("kind", "kind", "key"),
    Column("is_champion", "in use", lambda is_champion: "yes" if is_champion else "", style=lambda _: "green"),
    *extra(("trained_at", "trained (UTC)", moment)),
    Column("metrics", "figures of its training", lambda all_: _first(all_)),
    *extra(("data_version", "data version", "name")),
)  # fmt: skip


def list_models(context: typer.Context, as_json: Json = False) -> None:
    """List all models; one of each word, source and kind is in use: the champion."""
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
        show_table(rows, MODELS)
    else:
        invocation.note(f"{folder}: no model has been trained yet")


def promote(
    context: typer.Context,
    model: ModelId,
    reason: Annotated[str, Option(help="Why, for those who read the list of champions later")] = "by hand",
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


def rollback(
    context: typer.Context,
    word: Annotated[str, Argument(help="Word, such as jobs", autocompletion=offered_words)],
    kind: Annotated[str, Argument(help="Kind of model, as 'whorl models list' shows it")],
    source: Annotated[str, Option("--source", "-s", help="Source", autocompletion=offered_sources)],
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
    if as_json:
        show_json(decision)
    else:
        kind, source, model = (as_text(decision[key]) for key in ("kind", "source", "model_id"))
        print(f"{kind} of source {source} is now {model} ({as_text(decision['reason'])})")
