"""`whorl runs` and `whorl models`: what flows were asked and found, and which model is in use."""

from flows.cli.invocation import Invocation, run_flow
from flows.cli.output import figure, moment, setting, show_facts, show_json, show_table
from tasks.choices import checked_source
from tasks.quantities import counted, duration
from tasks.report.result import Column, as_text, columns, extra, records

RUNS = columns(
    ("run_id", "run", "key"), ("flow", "flow", "name"), ("source", "source", "key"),
    Column("status", "status", kind="name", style=lambda status: "red" if status == "failed" else "green"),
    ("started_at", "started (UTC)", moment), ("runtime_s", "took", duration),
    *extra(("data_version", "data version", "name"), ("code_version", "code version", "name")),
)  # fmt: skip
NODES = columns(("node", "node", "name"), ("said", "what it says"))

N_LETTERS = 26


def pipeline(
    call: Invocation,
    source: list[str] | None = None,
    word: list[str] | None = None,
    trials: int = 0,
    network: bool = True,
) -> None:
    """Go from files to answers, of all words as one graph.

    What lies in the inboxes is read; then each source is preprocessed, learned, fingerprinted, clustered and answered.
    Only what has changed is done: data, settings, code, or what an earlier run had made and is gone.

    --source: Only this source; once for each
    --word: Only the nodes of this word; once for each
    --trials (0..): Trials of the search for Perona's network; 0: no search
    --network/--no-network: Train Perona's network, which makes fingerprints"""
    own = {"sources": tuple(source or ()), "trials": trials, "trains_network": network}
    found = run_flow(call, "whorl-pipeline", **own, **({"words": tuple(word)} if word else {}))
    if call.as_json:
        show_json(found)
        return
    rows = [{"node": name, "said": said} for name, said in found["said"].items()]
    show_table(rows, NODES)
    others = ", the others were as they are" if found["n_done"] < found["n_nodes"] else ""
    print(f"\n{counted(found['n_done'], 'node')} of {found['n_nodes']} done{others}")


def list_runs(call: Invocation, top: int = 20) -> None:
    """List the latest runs.

    --top (1..): How many, the latest first"""
    from tasks.warehouse import runs

    rows = records(runs.list_runs(call.warehouse, limit=top))
    if call.as_json:
        show_json({"runs": rows})
    elif rows:
        show_table(rows, RUNS)
    else:
        call.note("no flow has run yet in this home")


def show(call: Invocation, run: str) -> None:
    """Show one run: parameters, figures, versions.

    run: Id of a run, or its beginning"""
    from tasks.settings import leaves
    from tasks.warehouse import runs

    found = runs.read_run(call.warehouse, run)
    if call.as_json:
        return show_json(found)
    facts = {key: moment(value) if key.endswith("_at") else as_text(value) for key, value in found.items()}
    facts["took"] = duration((found["ended_at"] - found["started_at"]).total_seconds())
    for part, show_value in (("figures", figure), ("parameters", setting)):
        del facts[part]
        facts |= {f"{part}.{key}": show_value(value) for key, value in leaves(found[part]).items()}
    show_facts(facts)


def compare(call: Invocation, run: list[str]) -> None:
    """Show where runs differ: parameters, and figures with the best marked by *.

    Times and paths are left out. For a notebook: compare_runs of tasks.warehouse.runs gives the same as a frame.

    RUN...: Ids of runs, or how they begin"""
    from tasks.errors import BadSetting
    from tasks.warehouse import runs

    ids = list(dict.fromkeys(runs.run_id_of(call.warehouse, one) for one in run))
    if len(run) < 2:
        raise BadSetting("runs: one alone; expected two or more to compare")
    rows = records(runs.compare_runs(call.warehouse, ids))
    if call.as_json:
        told = [{"key": row["key"], "values": [row[one] for one in ids], "best": row["best"] or None} for row in rows]
        return show_json({"runs": ids, "differences": told})
    if not rows:
        call.note("the runs differ in nothing")
        return
    names = {one: chr(ord("A") + at) if at < N_LETTERS else str(at + 1) for at, one in enumerate(ids)}
    show_facts({name: one for one, name in names.items()})
    print()
    shown = [
        {"key": row["key"]} | {one: f"{figure(row[one])}{' *' if row['best'] == one else ''}" for one in ids}
        for row in rows
    ]
    show_table(shown, (Column("key", "differs in"), *(Column(one, name, kind="number") for one, name in names.items())))
    call.note(f"{counted(len(rows), 'difference')}; * the best")


MOST_METRICS = 3
MODELS = columns(
    ("model_id", "model", "key"), ("word", "word", "name"), ("source", "source", "key"),
    ("kind", "kind", "key"),
    Column("is_champion", "in use", lambda is_champion: "yes" if is_champion else "", style=lambda _: "green"),
    *extra(("trained_at", "trained (UTC)", moment)),
    Column("metrics", "figures of its training", lambda all_: _first(all_)),
    *extra(("data_version", "data version", "name")),
)  # fmt: skip


def list_models(call: Invocation) -> None:
    """List all models; one of each word, source and kind is in use: the champion."""
    from tasks.warehouse import registry

    folder = call.warehouse.models
    cards = registry.cards(folder)
    in_use = {key: registry.champion(folder, *key) for key in {(one.word, one.source, one.kind) for one in cards}}
    champions = {card.model_id for card in in_use.values() if card}
    rows = [{**card.model_dump(exclude={"files"}), "is_champion": card.model_id in champions} for card in cards]
    if call.as_json:
        show_json({"models": rows})
    elif rows:
        show_table(rows, MODELS)
    else:
        call.note(f"{folder}: no model has been trained yet")


def promote(call: Invocation, model: str, reason: str = "by hand") -> None:
    """Put a model into use; the one before it can be brought back with rollback.

    model: Id of a model
    --reason: Why, for those who read the list of champions later"""
    from tasks.errors import NotFound
    from tasks.warehouse import registry

    warehouse = call.warehouse
    cards = registry.cards(warehouse.models)
    word = next((card.word for card in cards if card.model_id == model), None)
    if word is None:
        known = ", ".join(card.model_id for card in cards) or "none"
        raise NotFound(f"model {model!r}: not in {warehouse.models}; there are: {known}")
    _tell(call, registry.promote(warehouse, word, model, reason).model_dump())


def rollback(call: Invocation, word: str, kind: str, source: str) -> None:
    """Bring back the model that was in use before the present one.

    word: Word, such as jobs
    kind: Kind of model, as 'whorl models list' shows it
    --source, -s: Source"""
    from tasks.warehouse import registry

    decision = registry.roll_back(call.warehouse, word, checked_source(source), kind)
    _tell(call, decision.model_dump())


def _first(metrics: dict[str, float]) -> str:
    """The first few of many metrics; a training puts those that matter most first."""
    told = [f"{key} {metrics[key]:.4g}" for key in list(metrics)[:MOST_METRICS]]
    more = len(metrics) - len(told)
    return ", ".join([*told, *([f"{more:,} more"] if more > 0 else [])])


def _tell(call: Invocation, decision: dict[str, object]) -> None:
    if call.as_json:
        show_json(decision)
    else:
        kind, source, model = (as_text(decision[key]) for key in ("kind", "source", "model_id"))
        print(f"{kind} of source {source} is now {model} ({as_text(decision['reason'])})")
