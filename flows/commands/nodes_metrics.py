"""`whorl nodes metrics`: what became of each metric, and why."""

from typing import Annotated, Any

import typer

from flows.commands.nodes_options import one_node_source
from flows.commands.options import Json, Source
from flows.invocation import invocation_of
from flows.shown import count, text
from flows.tables import Column, show_table
from tasks.nodes.node_words import agreement, agreement_without, counts_as, decision
from tasks.quantities import share

COLUMNS = (
    Column("benchmark_type", "benchmark", kind="key"),
    Column("metric", "metric", kind="key"),
    Column("unit", "unit", kind="name"),
    Column("unit_written", "written", is_extra=True),
    Column("n_values", "values", count, kind="number", is_extra=True),
    Column("dispersion", "varies by", share, kind="number", is_extra=True),
    Column("decision", "kept or dropped", style=lambda told: "" if told == "kept" else "dim"),
    Column("counts_as", "counts as", kind="name"),
    Column("orientation_from", "said by", kind="name", is_extra=True),
    Column("rule", "paper's rule", kind="name", is_extra=True),
    Column("without", "without stressed", kind="name", is_extra=True),
)


def metrics(
    context: typer.Context,
    source: Source = None,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", "-b", help="Only those of this benchmark", show_default=False)
    ] = None,
    kept: Annotated[bool, typer.Option("--kept", help="Only those that count")] = False,
    as_json: Json = False,
) -> None:
    """Show for each metric unit, kept or dropped and why, orientation, and whether the paper's rule agrees with that.

    As decided by the preprocessing in use of the source. The rule is asked with and without the stressed ones."""
    from flows.machine_output import records, show_json
    from tasks.nodes.answers import read_decisions, require_model

    invocation = invocation_of(context)
    warehouse = invocation.warehouse
    chosen = one_node_source(warehouse, source)
    model_id = require_model(warehouse, chosen)
    found = read_decisions(warehouse, chosen, model_id)
    n_all, n_kept = len(found), int(found["is_kept"].sum())
    if benchmark is not None:
        found = found[found["benchmark_type"].str.partition("@")[0] == benchmark.partition("@")[0]]
    rows = records(found[found["is_kept"]] if kept else found)
    if as_json:
        show_json({"source": chosen, "model_id": model_id, "n_recorded": n_all, "n_kept": n_kept, "metrics": rows})
        return
    show_table([_shown(row) for row in rows], COLUMNS)
    invocation.note(f"{n_kept:,} of {n_all:,} metrics kept by {model_id}; the paper: 54 of 153")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    told = {"decision": text(decision(row)), "counts_as": counts_as(row)}
    return {**row, **told, "rule": agreement(row["agrees"]), "without": agreement_without(row)}
