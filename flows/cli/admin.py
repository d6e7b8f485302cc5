"""`whorl report`, `serve`, `deploy`, `doctor`: the site of a home, schedules and the UI, what is lacking."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from flows.cli.invocation import Json, Source, invocation_of, one_source, progress_bar
from flows.cli.output import as_command, plain, show_json, show_table
from tasks.report.result import Column, columns, extra

if TYPE_CHECKING:
    from flows.cli.invocation import Invocation
    from tasks.doctor import Finding

Word = Literal["jobs", "workloads", "nodes"]
Runs = Annotated[
    list[str] | None, Option("--run", metavar="RUN_ID", help="Figures of this run, of workloads; once for each")
]
Counters = Annotated[
    list[str] | None,
    Option("--counter", metavar="NAME", help="With --run: draw this counter; by default those that moved most"),
]
Out = Annotated[Path | None, Option("--out", file_okay=False, help="With --run: folder of the page and its images")]


def report(
    context: typer.Context,
    word: Annotated[Word | None, Argument(help="Only the page of a source of this word")] = None,
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
    chosen = one_source(invocation.warehouse, source, word)
    with progress_bar(invocation):
        if word == "jobs":
            from flows.cli.jobs import fresh_summary

            fresh_summary(warehouse, chosen, settings.jobs.summary)
        return {"word": word, "source": chosen, "path": str(write_source(warehouse, word, chosen, params))}


def _figures_of_runs(
    invocation: "Invocation", source: str | None, runs: list[str], counters: list[str], out: Path | None
) -> dict[str, Any]:
    """Write figures of these runs; returns source, page and images."""
    from tasks.report.page import write_figures
    from tasks.report.result import Result
    from tasks.report.workloads_evaluation import METHOD
    from tasks.report.workloads_runs import run_figures

    warehouse = invocation.warehouse
    chosen = one_source(invocation.warehouse, source, "workloads")
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


CHANGE_COLOURS = {"created": "green", "updated": "yellow", "unchanged": "dim"}
DEPLOYED = columns(
    ("kind", "what", "name"), ("name", "name", "name"),
    Column("change", "done", kind="name", style=lambda change: CHANGE_COLOURS[change]),
)  # fmt: skip


def serve(
    context: typer.Context,
    port: Annotated[int | None, Option(min=0, max=65_535, help="Port, instead of whorl.port; 0: a free one")] = None,
    reports_port: Annotated[
        int | None, Option(min=0, max=65_535, help="Port of the pages, instead of whorl.reports_port; 0: a free one")
    ] = None,
    host: Annotated[str, Option(help="Address to listen on; 0.0.0.0: all, for workers elsewhere")] = "127.0.0.1",
    limit: Annotated[int, Option(min=1, help="Flow runs at a time")] = 2,
    stop: Annotated[
        bool, Option("--stop", help="End what serves this home: whorl serve, or the server that commands share")
    ] = False,
) -> None:
    """Run Prefect's server, its UI and a worker.

    With all flows registered, and the site of the home with its metrics beside them, until Ctrl-C or SIGTERM. It
    answers only who shows the key in api.key of the home folder, which also logs in to the UI."""
    from flows.engine.serving import serve as serve_home
    from flows.engine.serving import stop_serving

    settings = invocation_of(context).settings
    if stop:
        ended = stop_serving(settings.warehouse.home)
        print(f"stopped process {ended.pid}, which served {ended.url}")
        return
    serve_home(
        settings, host=host, port=port, reports_port=reports_port, limit=limit, say=lambda line: print(line, flush=True)
    )


def deploy(
    context: typer.Context,
    api_url: Annotated[
        str | None, Option(help="Address of the API, instead of PREFECT_API_URL or the running whorl serve")
    ] = None,
    as_json: Json = False,
) -> None:
    """Register the flows with a Prefect server.

    Schedules come inactive; pool, limits and automation come with them. Twice is the same as once."""
    invocation = invocation_of(context)
    invocation.prepare_client(api_url)
    from flows.engine.deploying import (
        deploy as register,  # not before: it imports prefect, which reads the environment then
    )

    done = plain(register(invocation.settings, api_url))
    if as_json:
        show_json(done)
    else:
        show_table(done, DEPLOYED)


STATE_COLOURS = {"ok": "green", "missing": "yellow", "broken": "bold red"}
AREAS = ("whorl", "machine", "tools")
FINDINGS = columns(
    Column("state", "state", kind="name", style=lambda state: STATE_COLOURS[state]), ("name", "what", "name"),
    ("found", "found"), *extra(("purpose", "for")), ("fix", "what to do"),
)  # fmt: skip


def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Say what this machine has and lacks.

    Exits with 1 only if whorl itself cannot work."""
    from tasks.doctor import examine
    from tasks.errors import WhorlError

    invocation = invocation_of(context)
    findings = examine(lambda: invocation.settings)
    with suppress(WhorlError):  # a wrong setting is among the findings already
        findings.append(_server(invocation.settings.warehouse.home))
    findings.sort(key=lambda one: AREAS.index(one.area))
    if as_json:
        show_json({"findings": findings})
    else:
        show_table(plain(findings), FINDINGS)
        missing = [one.fix.split()[-1] for one in findings if one.area == "tools" and one.state == "missing"]
        if missing:
            invocation.note(f"all missing tools at once, on Debian: apt-get install {' '.join(missing)}")
    if any(one.state == "broken" for one in findings):
        raise typer.Exit(1)


def _server(home: Path) -> "Finding":
    from flows.engine.servers import is_healthy, read_server_file, running_server
    from tasks.doctor import Finding

    purpose = "schedules, and verbs that change something start faster"
    named = os.environ.get("PREFECT_API_URL")
    url = named if named and is_healthy(named) else None if named else running_server(home)
    if url:
        server = read_server_file(home)
        is_shared = bool(server and server.is_shared and server.url == url)
        what = f"{url}, which commands share, process {server.pid}; no schedules" if server and is_shared else url
        return Finding("whorl", "Prefect server", "ok", what, purpose, "whorl serve" if is_shared else "")
    found = f"{named} (PREFECT_API_URL) does not answer" if named else "none runs for this home"
    fix = "mend or unset PREFECT_API_URL" if named else "whorl serve"
    return Finding("whorl", "Prefect server", "broken" if named else "missing", found, purpose, fix)
