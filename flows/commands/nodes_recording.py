"""`whorl nodes record`: benchmarks, run and recorded on this machine or on nodes that it emulates."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.commands.options import Json
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import as_command, counted
from tasks.quantities import share
from tasks.source_names import checked_source

if TYPE_CHECKING:
    from tasks.nodes.record.params import RecordParams

Place = Literal["local", "emulated"]
Profile = Literal["short", "paper"]


def record(
    context: typer.Context,
    node: Annotated[str | None, typer.Option(help="Name of this machine as a node; otherwise its host name")] = None,
    benchmark: Annotated[
        list[str] | None, typer.Option("--benchmark", "-b", metavar="NAME", help="Only this one; may be repeated")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(help="A campaign: executions of each benchmark on each node; 0: what is lacking or stalest"),
    ] = None,
    executions: Annotated[int | None, typer.Option(help="Executions of this call without a campaign")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="How long executions are started; the next call with the same folder goes on")
    ] = None,
    place: Annotated[Place | None, typer.Option(help="This machine as it is, or emulated nodes on it")] = None,
    profile: Annotated[Profile | None, typer.Option(help="short: 2 s a benchmark; paper: 30 s")] = None,
    stressed: Annotated[
        float | None, typer.Option(help="Share of a campaign's executions under stress, 0 to 0.5")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides the order of a campaign, and what is stressed")] = None,
    source: Annotated[
        str | None, typer.Option("--source", "-s", help="Put it into the landing folder under this name, for ingest")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the recording; otherwise <home>/recordings/nodes")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what a campaign would run")] = False,
    as_json: Json = False,
) -> None:
    """Run standard benchmarks and record them with the machine's own metrics.

    Without a campaign (--runs) it completes what the node lacks, then repeats what is doubtful or stalest. Needs the
    six tools, and root for emulated nodes. Prints the folder of the recording."""
    invocation = invocation_of(context)
    asked = {
        "node": node,
        "benchmarks": benchmark,
        "runs": runs,
        "executions": executions,
        "minutes": minutes,
        "place": place,
        "profile": profile,
        "stressed_ratio": stressed,
        "seed": seed,
    }
    flags = {"nodes": {"record": {key: value for key, value in asked.items() if value is not None}}}
    settings = invocation.resolved(flags).settings
    if dry_run:
        show_plan(invocation, settings.nodes.record, as_json=as_json)
        return
    from tasks.nodes.record.campaign import runnable

    runnable(settings.nodes.record)
    told = {"source": checked_source(source)} if source is not None else {}
    folder = out.absolute() if out else settings.warehouse.home / "recordings" / "nodes"
    landing = settings.warehouse.landing_folder if source is not None else ""
    with flow_running(invocation):
        from flows.node_params import NodeRecordParams
        from flows.nodes import record_nodes

        found = record_nodes(
            NodeRecordParams(folder=str(folder), record=settings.nodes.record, landing=landing, **told)
        )
    if as_json:
        from flows.machine_output import show_json

        show_json(found)
        return
    print(found["folder"])
    done = f", {found['n_clean']:,} of {found['n_planned']:,} undisturbed so far" if found["n_planned"] else ""
    invocation.note(f"recorded {counted(found['n_new'], 'execution')}{done}")
    for name, faults in found["unavailable"].items():
        invocation.note(f"{name}: {'; '.join(faults)}")
    invocation.note(f"the sampler itself took {share(found['sampler_cores'])} of one core")
    if found["n_failed"]:
        invocation.note(f"{counted(found['n_failed'], 'execution')} could not be run; -v says why")
    elif not found["n_new"] and found["n_clean"] < found["n_planned"]:
        times = counted(settings.nodes.record.repeats, "time")
        invocation.note(f"what is missing was disturbed, and repeated {times} already; raise nodes.record.repeats")
    paths = () if source is not None else (found["folder"],)
    invocation.note(
        f"next: {as_command('whorl', 'nodes', 'ingest', *paths, *(('--source', source) if source else ()))}"
    )


def show_plan(invocation: Invocation, params: "RecordParams", *, as_json: bool) -> None:
    """Print the executions of a campaign in order; without a campaign, what one call runs."""
    from flows.machine_output import show_json
    from tasks.nodes.record.campaign import check_parsers, planned
    from tasks.nodes.record.plan import chosen_templates, lacking_stress
    from tasks.nodes.tools import PARSERS

    templates, has_groups = chosen_templates(params), params.isolation != "none"
    check_parsers(templates, PARSERS, params.profile)
    plan = planned(params, templates, has_groups=has_groups)
    rows = [
        {
            "number": one.number,
            "node": one.node,
            "benchmark": one.benchmark,
            "dose": one.dose,
            "dose_level": one.dose_level,
        }
        for one in (plan.executions if plan else ())
    ]
    if as_json:
        show_json({"n_executions": len(rows) if plan else params.executions, "executions": rows})
        return
    for row in rows:
        print(f"{row['number']:>5}  {row['node']}  {row['benchmark']}  {row['dose']}".rstrip())
    n_stressed = sum(one.stress_wanted for one in (plan.executions if plan else ()))
    invocation.note(
        f"{counted(len(rows), 'execution')}, {n_stressed:,} of them stressed"
        if plan
        else f"no campaign: {counted(params.executions, 'execution')} on each node of what it lacks, or what is stalest"
    )
    for line in lacking_stress(params, templates, has_groups=has_groups):
        invocation.note(line)
