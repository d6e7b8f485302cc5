"""`whorl report`: the page that tells what is known of a source."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.commands.demo import demo
from flows.commands.options import Json, Source, one_source
from flows.commands.summaries import fresh_summary
from flows.invocation import invocation_of
from flows.progress_bar import progress_bar

if TYPE_CHECKING:
    from flows.invocation import Invocation
    from tasks.jobs.params import ReportParams
    from tasks.warehouse.place import Warehouse

Word = Literal["jobs", "workloads", "nodes"]
Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run", metavar="RUN_ID", help="Figures of this run, of workloads; once for each", show_default=False
    ),
]
Counters = Annotated[
    list[str] | None,
    typer.Option(
        "--counter",
        metavar="NAME",
        help="With --run: draw this counter; by default those that moved most",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", file_okay=False, help="With --run: folder of the page and its images")
]


def add_commands(app: typer.Typer) -> None:
    """Add the verbs to the root."""
    app.command()(demo)
    app.command()(report)


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
