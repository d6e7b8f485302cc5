"""`whorl runs`: what flows did, with which parameters, and what they found."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands import completion
from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.shown import counted, figure, moment, setting, text
from flows.tables import Column, show_facts, show_table
from tasks.quantities import duration

if TYPE_CHECKING:
    from tasks.warehouse.place import Warehouse

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

COMPARED = (
    Column("key", "differs in"),
    Column("first", "first", figure),
    Column("second", "second", figure),
    Column("ratio", "ratio", figure, kind="number"),
)
BEGIN_SO = """
    SELECT run_id FROM ops.runs WHERE starts_with(run_id, $id) ORDER BY run_id <> $id, started_at DESC, run_id
"""
LATEST = "'whorl runs list' shows the latest"
N_NAMED = 5  # ids that an error message names


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
        show_json({"runs": rows})
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

    warehouse = invocation_of(context).warehouse
    found = runs.read_run(warehouse, one_run(warehouse, run))
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
    first, second = (one_run(invocation.warehouse, run) for run in (first, second))
    found = records(runs.compare_runs(invocation.warehouse, first, second))
    rows: list[dict[str, Any]] = [row for row in found if row["key"] != "run_id"]  # of two runs it always differs
    if as_json:
        show_json({"first": first, "second": second, "differences": rows})
        return
    if not rows:
        invocation.note("the two runs differ in nothing")
        return
    show_facts({"first": first, "second": second})
    print()
    show_table(rows, COMPARED)
    invocation.note(f"{counted(len(rows), 'difference')}; ratio: second over first")


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
