"""`whorl jobs record`: real recurring jobs, run and recorded on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.running import flow_running


def record(
    context: typer.Context,
    minutes: Annotated[
        float | None, typer.Option(help="How long jobs are submitted; the queue is then worked off", show_default=False)
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Number of recurring jobs", show_default=False)] = None,
    workers: Annotated[int | None, typer.Option(help="Jobs that run at the same time", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(help="Decides data, jobs and submit times", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the recording; otherwise a new one in <home>/recordings")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run and record real jobs on this machine.

    Prints the folder of the recording, for 'whorl jobs ingest'."""
    from flows.machine_output import show_json

    invocation = invocation_of(context)
    asked = {"minutes": minutes, "jobs": jobs, "workers": workers, "seed": seed}
    flags = {"jobs": {"record": {key: value for key, value in asked.items() if value is not None}}}
    settings = invocation.resolved(flags).settings
    folder = out.absolute() if out else settings.warehouse.home / "recordings" / "jobs-{run}"
    with flow_running(invocation):
        from flows.job_params import RecordFlowParams
        from flows.jobs import record_jobs

        found = record_jobs(RecordFlowParams(folder=str(folder), record=settings.jobs.record))
    if as_json:
        show_json(found)
    else:
        print(found["folder"])
