"""`whorl report`: the site of a home, or the page of one source."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.commands.demo import demo
from flows.commands.options import Json, Source, one_source
from flows.invocation import invocation_of
from flows.progress_bar import progress_bar
from flows.shown import as_command

if TYPE_CHECKING:
    from flows.invocation import Invocation

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
    word: Annotated[
        Word | None, typer.Argument(help="Only the page of a source of this word", show_default=False)
    ] = None,
    source: Source = None,
    run: Runs = None,
    counter: Counters = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Write the site of the home and print where it begins.

    Its index says of each word what was found and what to do; each source has a page, and so has each job, workload and
    node. It needs no network. With a word: the page of one source. With --run, of workloads: runs over time with their
    change points, their phases, and each two at their best offset, as a page and as images."""
    from flows.machine_output import show_json

    invocation = invocation_of(context)
    _check_options(word, source, run, counter, out)
    told = _figures_of_runs(invocation, source, run, counter or [], out) if run else _pages(invocation, word, source)
    if as_json:
        show_json(told)
    else:
        print(told["path"], *told.get("figures", []), sep="\n")


def _check_options(
    word: Word | None, source: str | None, runs: list[str] | None, counters: list[str] | None, out: Path | None
) -> None:
    """Raise BadSetting for options that only a word, or figures of runs, have."""
    from tasks.errors import BadSetting

    if runs and word != "workloads":
        raise BadSetting(f"--run: figures of runs are of workloads; write 'whorl report workloads --run {runs[0]}'")
    if not runs and (counters or out):
        raise BadSetting(f"{'--counter' if counters else '--out'}: goes with --run, which names a run of workloads")
    if source and word is None:
        raise BadSetting(f"--source: goes with a word; write 'whorl report jobs --source {source}'")


def _pages(invocation: "Invocation", word: Word | None, source: str | None) -> dict[str, Any]:
    """Write the site, or the page of one source; returns source and path."""
    from tasks.report.site import SiteParams, write_site, write_source

    settings = invocation.settings
    warehouse, params = settings.warehouse, SiteParams(jobs=settings.jobs.report, workloads=settings.workloads.report)
    if word is None:
        from tasks.warehouse.connection import require

        require(warehouse)
        with progress_bar(invocation):
            return {"path": str(write_site(warehouse, params))}
    chosen = _source_of(invocation, word, source)
    with progress_bar(invocation):
        if word == "jobs":
            from flows.commands.summaries import fresh_summary

            fresh_summary(warehouse, chosen, settings.jobs.summary)
        return {"word": word, "source": chosen, "path": str(write_source(warehouse, word, chosen, params))}


def _source_of(invocation: "Invocation", word: Word, source: str | None) -> str:
    warehouse = invocation.warehouse
    if word == "nodes":
        from flows.commands.nodes_options import one_node_source

        return one_node_source(warehouse, source)
    if word == "workloads":
        from flows.commands.workloads_options import one_workload_source

        return one_workload_source(warehouse, source)
    return one_source(warehouse, source)


def _figures_of_runs(
    invocation: "Invocation", source: str | None, runs: list[str], counters: list[str], out: Path | None
) -> dict[str, Any]:
    """Write figures of these runs; returns source, page and images."""
    from tasks.report.page import write_figures
    from tasks.report.result import Result
    from tasks.report.workloads_measured import METHOD
    from tasks.report.workloads_runs import run_figures

    warehouse = invocation.warehouse
    chosen = _source_of(invocation, "workloads", source)
    named = [part for run in runs for part in ("--run", run)]
    named += [part for one in counters for part in ("--counter", one)]
    words = ("whorl", "report", "workloads", "--source", chosen, *named, *(("--out", out) if out else ()))
    with progress_bar(invocation):
        figures, version = run_figures(
            warehouse, chosen, runs, counters, invocation.settings.workloads.report.n_counters
        )
        result = Result(
            f"Runs of workloads: {chosen}",
            ", ".join(runs),
            figures=tuple(figures),
            made_of=f"data version {version}",
            again=as_command(*words),
            method=METHOD,
        )
        page, *images = write_figures(out or warehouse.home / "reports", f"workloads-{chosen}-runs", result)
    return {"word": "workloads", "source": chosen, "path": str(page), "figures": [str(image) for image in images]}
