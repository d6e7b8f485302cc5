"""`whorl workloads watch`: an alarm where what runs is not what should run, or is unknown."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.options import Json, Source
from flows.commands.workloads_options import source_with_model
from flows.invocation import invocation_of
from flows.running import flow_running
from flows.shown import counted
from flows.tables import Column, show_table

if TYPE_CHECKING:
    from flows.workload_results import WorkloadsWatched
    from tasks.settings import Settings
    from tasks.warehouse.place import Warehouse

COLUMNS = (Column("message", "what runs and should not"),)


def watch(
    context: typer.Context,
    source: Source = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKLOAD", help="Workload that may run; repeatable; otherwise what ran last"),
    ] = None,
    newest: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Look at the latest runs of the source, instead of recording"),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=5, max=3600, help="How long is recorded", show_default=False)
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            metavar="machine|PID|GROUP",
            help="Beside the machine, whose counters: of a process, or of a control group by its path, unit, container "
            "or pod",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at what runs, and raise an alarm where it should not, or is unknown; the same going on is told once.

    What runs now is recorded and kept in the source, or its latest runs are looked at."""
    from flows.machine_output import show_json

    invocation = invocation_of(context)
    asked = {"expected": expect or None, "newest": newest, "seconds": seconds, "subject": subject}
    flags: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    flags |= {} if newest is None else {"look_at": "newest"}
    settings = invocation.resolved({"workloads": {"watch": flags}} if flags else {}).settings
    chosen = source_with_model(settings.warehouse, source)
    with flow_running(invocation):
        found = _watched(settings, chosen)
    alarms = _alarms(settings.warehouse, found["alarms"])
    if as_json:
        show_json({**found, "source": chosen, "alarms": alarms})
        return
    if alarms:
        show_table(alarms, COLUMNS)
    new = counted(len(alarms), "new alarm") if alarms else "no new alarm"
    invocation.note(f"looked at {counted(len(found['run_ids']), 'run')}: {new}")


def _watched(settings: "Settings", source: str) -> "WorkloadsWatched":
    from flows.workload_model_params import WorkloadWatchParams
    from flows.workload_watch import watch_workloads

    workloads = settings.workloads
    return watch_workloads(
        WorkloadWatchParams(
            source=source,
            watch=workloads.watch,
            record=workloads.record,
            warehouse=settings.warehouse,
        )
    )


def _alarms(warehouse: "Warehouse", ids: list[str]) -> list[dict[str, Any]]:
    from flows.machine_output import records
    from tasks.warehouse.alarms import read_alarms

    rows = records(read_alarms(warehouse, ids=ids, limit=max(1, len(ids))))
    return [{**row, "evidence": json.loads(row["evidence"])} for row in rows]
