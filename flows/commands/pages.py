"""`whorl demo` and `whorl report`: the whole story on recorded data, and the page that tells it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.commands.demo_ending import show_riskiest
from flows.commands.demo_nodes import show_nodes
from flows.commands.demo_workload import show_workload
from flows.commands.file_results import file_results, show_files
from flows.commands.options import Json, Source, one_source
from flows.commands.summaries import fresh_summary
from flows.commands.summary import show_jobs, show_next_run
from flows.commands.watch import show_alarms
from flows.invocation import invocation_of
from flows.progress_bar import progress_bar
from flows.running import flow_running
from flows.shown import as_command

if TYPE_CHECKING:
    from flows.invocation import Invocation
    from tasks.jobs.params import ReportParams
    from tasks.warehouse.place import Warehouse

Word = Literal["jobs", "workloads", "nodes"]
Runs = Annotated[
    list[str] | None,
    typer.Option("--run", help="Figures of this run, of workloads; once for each", show_default=False),
]
Counters = Annotated[
    list[str] | None,
    typer.Option(
        "--counter", help="With --run: draw this counter; by default those that moved most", show_default=False
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", file_okay=False, help="With --run: folder of the page and its images")
]
SHOWN_JOBS = 10


def add_commands(app: typer.Typer) -> None:
    """Add the two verbs to the root."""
    app.command()(demo)
    app.command()(report)


def demo(context: typer.Context, as_json: Json = False) -> None:
    """Tell the whole story on recorded jobs, workloads and nodes.

    The log that whorl ships is read, summarised, watched and predicted, a recorded run of a workload that was held out
    is named, and recorded nodes are ranked, in a home of its own: --home, or demo/ in the home folder. The same demo
    again adds nothing."""
    from flows.machine_output import show_json
    from tasks.jobs.exceedance import next_run
    from tasks.jobs.groups import read_groups

    invocation = invocation_of(context)
    if invocation.home is None:
        invocation = replace(invocation, home=invocation.warehouse.home / "demo")
    settings = invocation.settings
    with flow_running(invocation):
        from flows.demo import DemoParams, tell_demo

        asked = DemoParams(
            warehouse=settings.warehouse, jobs=settings.jobs, workloads=settings.workloads, nodes=settings.nodes
        )
        told = tell_demo(asked)
    if as_json:
        show_json(told)
        return
    show_files(file_results(settings.warehouse, told["source"]))
    print()
    totals = fresh_summary(settings.warehouse, told["source"], settings.jobs.summary)
    show_jobs(invocation, totals, sort="waiting", top=SHOWN_JOBS)
    costliest = read_groups(settings.warehouse, told["source"], order="waiting", limit=1)["group_key"]
    for key in costliest:
        print()
        show_next_run(next_run(settings.warehouse, told["source"], key, settings.jobs.summary))
    print()
    show_alarms(invocation, settings.warehouse, told["alarms"])
    print()
    show_riskiest(settings, told["source"])
    print()
    show_workload(told["workload"])
    print()
    show_nodes(told["nodes"])
    print()
    print(f"report: {told['report']}")
    print(f"what comes next: {told['predictions_report']}")
    print(f"what ran: {told['workload']['report']}")
    print(f"nodes: {told['nodes']['report']}")
    invocation.note(f"look further: {look_further(settings.warehouse.home)}")


def look_further(home: Path) -> str:
    """The command that asks the home of a demo."""
    return as_command("whorl", "jobs", "summary", "--home", home)


def report(
    context: typer.Context,
    word: Annotated[Word, typer.Argument(help="What the page is about")] = "jobs",
    source: Source = None,
    run: Runs = None,
    counter: Counters = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Write the page of a source and print its path.

    The page is one HTML file that needs no network. Shapes, predictions, reasons and what-ifs of jobs have a second
    page as soon as there are some. With --run, of workloads: runs over time with their change points, their phases side
    by side, and each two at their best offset, as a page and as images."""
    from flows.machine_output import show_json

    invocation = invocation_of(context)
    _check_options(word, run, counter, out)
    if word == "nodes":
        from flows.commands.nodes_report import show_report

        show_report(invocation, source, as_json=as_json)
        return
    if word == "workloads":
        from flows.commands.workload_pages import report_workloads

        told = report_workloads(invocation, source, run or [], counter or [], out)
        if as_json:
            show_json({"word": word, **told})
        else:
            print(told["path"], *told.get("figures", []), sep="\n")
        return
    told = _report_jobs(invocation, source)
    if as_json:
        show_json({"word": word, **told})
    else:
        print(told["path"], *([told["predictions_path"]] if "predictions_path" in told else []), sep="\n")


def _check_options(word: Word, runs: list[str] | None, counters: list[str] | None, out: Path | None) -> None:
    """Raise BadSetting for options that only figures of runs have."""
    from tasks.errors import BadSetting

    if runs and word != "workloads":
        raise BadSetting(f"--run: figures of runs are of workloads; write 'whorl report workloads --run {runs[0]}'")
    if not runs and (counters or out):
        raise BadSetting(f"{'--counter' if counters else '--out'}: goes with --run, which names a run of workloads")


def _report_jobs(invocation: "Invocation", source: str | None) -> dict[str, str]:
    """Write the pages about jobs; returns source and paths."""
    from tasks.jobs import steps

    settings = invocation.settings
    chosen = one_source(settings.warehouse, source)
    with progress_bar(invocation):
        fresh_summary(settings.warehouse, chosen, settings.jobs.summary)
        path = steps.report(settings.warehouse, chosen, settings.jobs.report)
        predictions_path = _predictions_page(settings.warehouse, chosen, settings.jobs.report)
    more = {} if predictions_path is None else {"predictions_path": predictions_path}
    return {"source": chosen, "path": path, **more}


def _predictions_page(warehouse: "Warehouse", source: str, params: "ReportParams") -> str | None:
    """Write the second page, about shapes, predictions, reasons and what-ifs; None if there are none of them yet."""
    from tasks.report.predictions_data import has_predictions
    from tasks.report.predictions_page import render_predictions

    return str(render_predictions(warehouse, source, params)) if has_predictions(warehouse, source) else None
