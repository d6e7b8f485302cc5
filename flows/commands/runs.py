"""`whorl runs`: what flows did, with which parameters, and what they found."""

from typing import Annotated, Any

import typer

from flows.commands import completion
from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.shown import counted, figure, moment, setting, text
from flows.tables import Column, show_facts, show_table
from tasks.quantities import duration

app = typer.Typer(help="Runs of flows: what was asked, what was found", no_args_is_help=True)

RunId = Annotated[str, typer.Argument(help="Id of a run, or its beginning", autocompletion=completion.run_ids)]
LISTED = (
    Column("run_id", "run", kind="key"),
    Column("flow", "flow", kind="name"),
    Column("source", "source", kind="key"),
    Column("status", "status", kind="name", style=lambda status: "red" if status == "failed" else "green"),
    Column("started_at", "started (UTC)", moment, kind="number"),
    Column("runtime_s", "took", duration, kind="number"),
    Column("data_version", "data version", kind="name", is_extra=True),
    Column("code_version", "code version", kind="name", is_extra=True),
)


@app.command("list")
def list_runs(
    context: typer.Context,
    top: Annotated[int, typer.Option(min=1, help="How many, the latest first")] = 20,
    as_json: Json = False,
) -> None:
    """List the latest runs."""
    from flows.machine_output import records, show_json
    from tasks.warehouse import runs

    invocation = invocation_of(context)
    rows = records(runs.list_runs(invocation.warehouse, limit=top))
    if as_json:
        show_json(rows)
    elif rows:
        show_table(rows, LISTED)
    else:
        invocation.note("no flow has run yet in this home")


@app.command()
def show(context: typer.Context, run: RunId, as_json: Json = False) -> None:
    """Show one run: parameters, figures, versions."""
    from flows.machine_output import show_json
    from tasks.settings import leaves
    from tasks.warehouse import runs

    found = runs.read_run(invocation_of(context).warehouse, run)
    if as_json:
        show_json(found)
        return
    facts = {key: moment(value) if key.endswith("_at") else text(value) for key, value in found.items()}
    facts["took"] = duration((found["ended_at"] - found["started_at"]).total_seconds())
    for part, show_value in (("figures", figure), ("parameters", setting)):
        del facts[part]
        facts |= {f"{part}.{key}": show_value(value) for key, value in leaves(found[part]).items()}
    show_facts(facts)


@app.command()
def compare(context: typer.Context, first: RunId, second: RunId, as_json: Json = False) -> None:
    """Show where two runs differ, and by how much."""
    from flows.machine_output import records, show_json
    from tasks.warehouse import runs

    invocation = invocation_of(context)
    rows: list[dict[str, Any]] = records(runs.compare_runs(invocation.warehouse, first, second))
    if as_json:
        show_json(rows)
        return
    if not rows:
        invocation.note("the two runs differ in nothing")
        return
    titles = (Column("key", "differs in"), Column("first", first, figure), Column("second", second, figure))
    show_table(rows, (*titles, Column("ratio", "ratio", figure, kind="number")))
    invocation.note(f"{counted(len(rows), 'difference')}; ratio: {second} over {first}")
