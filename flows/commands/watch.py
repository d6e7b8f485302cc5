"""`whorl jobs watch`: runs that take longer than was predicted, jobs that have stopped, and jobs that drift."""

import json
from typing import TYPE_CHECKING, Any

import typer

from flows.commands.options import Json, Source, one_source_with_runs
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import counted
from flows.tables import Column, show_table

if TYPE_CHECKING:
    from tasks.warehouse.place import Warehouse

MOST_SHOWN = 10
ALL_ALARMS = "SELECT raised_at, message FROM ops.alarms"
COLUMNS = (Column("message", "slow, stopped or drifted"),)


def watch(context: typer.Context, source: Source = None, as_json: Json = False) -> None:
    """Raise an alarm for every slow run, stopped job and drifting job, once."""
    from flows.machine_output import show_json

    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_source_with_runs(settings.warehouse, source)
    with flow_running(invocation):
        from flows.job_params import WatchFlowParams
        from flows.jobs import watch_jobs

        jobs = settings.jobs
        asked = WatchFlowParams(
            source=chosen,
            watch=jobs.watch,
            drift=jobs.drift,
            warehouse=settings.warehouse,
        )
        found = watch_jobs(asked)
    if as_json:
        show_json({"alarms": _alarms(settings.warehouse, found["alarms"])})
    else:
        show_alarms(invocation, settings.warehouse, found["alarms"])


def _alarms(warehouse: "Warehouse", ids: list[str]) -> list[dict[str, Any]]:
    from flows.machine_output import records
    from tasks.warehouse.alarms import read_alarms

    rows = records(read_alarms(warehouse, ids=ids, limit=max(1, len(ids))))
    return [{**row, "evidence": json.loads(row["evidence"])} for row in rows]


def show_alarms(invocation: Invocation, warehouse: "Warehouse", ids: list[str]) -> None:
    """Print these alarms."""
    alarms = _alarms(warehouse, ids)
    if not alarms:
        invocation.note("no new alarm: no run is slower than predicted, no job has stopped, none has drifted")
        return
    show_table(alarms[:MOST_SHOWN], COLUMNS)
    more = f"; all: whorl query --limit 0 '{ALL_ALARMS}'" if len(alarms) > MOST_SHOWN else ""
    invocation.note(f"{counted(len(alarms), 'new alarm')}{more}")
