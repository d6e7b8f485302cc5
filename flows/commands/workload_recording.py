"""`whorl workloads record`: real workloads, run and recorded on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from flows.commands.options import Json
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import counted
from tasks.quantities import share

if TYPE_CHECKING:
    from tasks.workloads.record.params import RecordParams


def record(
    context: typer.Context,
    minutes: Annotated[
        float | None,
        typer.Option(help="How long runs are started; the next call with the same folder goes on", show_default=False),
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option("--workload", "-w", metavar="NAME", help="Only this one; may be repeated")
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds, with a full stop in between", show_default=False)] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs of each workload with each input, in all", show_default=False)
    ] = None,
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Record under conditions instead: pair, pair_unlearned, load, limit, unlearned, input, idle, alone, "
            "or all; may be repeated",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides the order of the runs", show_default=False)] = None,
    perf: Annotated[
        str | None, typer.Option(help="none, light or syscalls: events that perf counts", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the recording; otherwise a new one in <home>/recordings")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run, and for how long")] = False,
    as_json: Json = False,
) -> None:
    """Run real workloads on this machine and sample it meanwhile.

    Prints the folder of the recording; what the sampler itself took is said beside it. Needs root for control groups
    and perf, and an otherwise idle machine."""
    from flows.machine_output import show_json
    from tasks.workloads.record.campaign import runnable
    from tasks.workloads.record.params import Condition

    invocation = invocation_of(context)
    asked: dict[str, object] = {
        "minutes": minutes,
        "workloads": workload,
        "rounds": rounds,
        "runs": runs,
        "seed": seed,
        "perf": perf,
    }
    if conditions:
        asked["conditions"] = get_args(Condition) if "all" in conditions else conditions
    flags = {"workloads": {"record": {key: value for key, value in asked.items() if value is not None}}}
    settings = invocation.resolved(flags).settings
    if dry_run:
        show_plan(invocation, settings.workloads.record, as_json=as_json)
        return
    runnable(settings.workloads.record)
    folder = out.absolute() if out else settings.warehouse.home / "recordings" / "workloads-{run}"
    with flow_running(invocation):
        from flows.workload_params import WorkloadRecordParams
        from flows.workloads import record_workloads

        found = record_workloads(WorkloadRecordParams(folder=str(folder), record=settings.workloads.record))
    if as_json:
        show_json(found)
        return
    print(found["folder"])
    invocation.note(
        f"recorded {counted(found['n_new'], 'run')}, {found['n_clean']:,} of {found['n_planned']:,} undisturbed so far"
    )
    invocation.note(f"the sampler itself took {share(found['sampler_cores'])} of one core")
    if found["n_failed"]:
        invocation.note(f"{counted(found['n_failed'], 'run')} failed; -v says why")


def show_plan(invocation: Invocation, params: "RecordParams", *, as_json: bool) -> None:
    """Print the runs in order, and about how long they take."""
    from flows.machine_output import show_json
    from tasks.workloads.record.campaign import planned

    plan = planned(params)
    minutes = plan.duration_s(params) / 60
    if as_json:
        rows = [{"run_id": r.run_id, "round": r.round, "workload": r.workload, "input": r.input} for r in plan.runs]
        show_json({"n_runs": len(rows), "minutes": minutes, "runs": rows})
        return
    for run in plan.runs:
        print(run.run_id)
    n_runs, n_rounds = counted(len(plan.runs), "run"), counted(params.rounds, "round")
    invocation.note(f"{n_runs} in {n_rounds}, about {minutes:.0f} minutes")
