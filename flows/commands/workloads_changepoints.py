"""`whorl workloads changepoints`: where a series changes."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.shown import count
from flows.tables import Column, show_table
from tasks.quantities import share
from tasks.workloads.choices import ChangePointMethod

if TYPE_CHECKING:
    from tasks.workloads.changepoints.found import ChangePoints

EACH = (
    Column("counter", "column", kind="name"),
    Column("row", "row", count, kind="number"),
    Column("probability", "probability", share, kind="number"),
)


def changepoints(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV with a header line, a column a counter")],
    method: Annotated[
        ChangePointMethod | None,
        typer.Option(
            help="bayes: run-length posterior; pelt, kernel, binseg: offline, by ruptures", show_default=False
        ),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Of each column on its own; otherwise those that all share")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find where a series changes.

    A row is the zero-based number of the first sample after a change; its probability is that of a change near it. An
    empty cell, and an empty line, is a missing sample and keeps its row."""
    from flows.machine_output import show_json
    from tasks.workloads.changepoints.finding import find_changepoints, find_changepoints_each
    from tasks.workloads.readers.tables import read_series

    invocation = invocation_of(context)
    chosen = {"method": method} if method else {}
    flags = {"workloads": {"identify": {"fingerprint": {"changepoints": chosen}}}} if chosen else {}
    workloads = invocation.resolved(flags).settings.workloads
    params = workloads.identify.fingerprint.changepoints
    series = read_series(file, workloads.read.limits)
    if each:
        found = dict(zip(series.names, find_changepoints_each(series.values, params), strict=True))
    else:
        found = {"": find_changepoints(series.values, params)}
    if as_json:
        told = {name: _told(one) for name, one in found.items()}
        show_json({"counters": told} if each else told[""])
        return
    rows = [
        {"counter": name, "row": row, "probability": probability}
        for name, one in found.items()
        for row, probability in zip(one.indices.tolist(), one.probabilities.tolist(), strict=True)
    ]
    if rows:
        show_table(rows, EACH if each else EACH[1:])
    else:
        invocation.note(f"no change in {len(series.values):,} samples")


def _told(found: "ChangePoints") -> dict[str, Any]:
    """A method that gives no probabilities has null in their places."""
    return {"changepoints": found.indices.tolist(), "probabilities": found.probabilities.tolist()}
