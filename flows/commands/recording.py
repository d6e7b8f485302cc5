"""`whorl jobs record`: real recurring jobs, run and recorded on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.running import flow_running
from flows.shown import counted
from tasks.quantities import share

NOTHING_RAN = "none"


def record(
    context: typer.Context,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="How long jobs are submitted; the next call with the same folder goes on", show_default=False
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Number of recurring jobs", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(help="Decides data, jobs and submit times", show_default=False)] = None,
    isolation: Annotated[
        str | None,
        typer.Option(help="auto, cgroups (need root) or threads: what holds jobs to their tokens", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the recording; otherwise a new one in <home>/recordings")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run and record real jobs on this machine.

    Prints the folder of the recording, for 'whorl jobs ingest'; what held the jobs to their tokens, and what the
    recorder itself took, is said beside it."""
    from flows.machine_output import show_json
    from tasks.jobs.record.cluster import check_needs

    invocation = invocation_of(context)
    asked = {"minutes": minutes, "jobs": jobs, "seed": seed, "isolation": isolation}
    flags = {"jobs": {"record": {key: value for key, value in asked.items() if value is not None}}}
    settings = invocation.resolved(flags).settings
    check_needs(settings.jobs.record)
    folder = out.absolute() if out else settings.warehouse.home / "recordings" / "jobs-{run}"
    with flow_running(invocation):
        from flows.job_params import RecordFlowParams
        from flows.jobs import record_jobs

        found = record_jobs(RecordFlowParams(folder=str(folder), record=settings.jobs.record))
    if as_json:
        show_json(found)
        return
    print(found["folder"])
    if found["isolation"] == NOTHING_RAN:
        invocation.note("every run was recorded already")
        return
    runs, cost = counted(found["n_runs"], "run"), share(found["own_cores_ratio"])
    invocation.note(f"recorded {runs}, held to their tokens by {found['isolation']}")
    invocation.note(f"the recorder itself took {cost} of one core")
