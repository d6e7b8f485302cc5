"""`whorl report`, `serve`, `deploy`, `doctor`: the site of a home, schedules and the UI, what is lacking."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from flows.cli.invocation import Invocation, one_source, progress_bar
from flows.cli.output import as_command, plain, show_json, show_table
from tasks.report.result import Column, columns, extra

if TYPE_CHECKING:
    from tasks.doctor import Finding

Word = Literal["jobs", "workloads", "nodes"]


def report(
    call: Invocation,
    word: Word | None = None,
    source: str | None = None,
    run: list[str] | None = None,
    counter: list[str] | None = None,
    out: Path | None = None,
) -> None:
    """Write the site of the home and print where it begins.

    Its index says of each word what was found and what to do; each source has a page, and so has each job, workload and
    node. It needs no network. With a word: the page of one source. With --run, of workloads: runs over time with their
    change points, their phases, and each two at their best offset, as a page and as images.

    word: Only the page of a source of this word
    --source
    --run RUN_ID: Figures of this run, of workloads; once for each
    --counter NAME: With --run: draw this counter; by default those that moved most
    --out <dir>: With --run: folder of the page and its images"""
    from tasks.errors import BadSetting

    if out and out.is_file():
        raise typer.BadParameter(f"Directory '{out}' is a file.", param_hint="--out")
    if run and word != "workloads":
        raise BadSetting(f"--run: figures of runs are of workloads; write 'whorl report workloads --run {run[0]}'")
    if not run and (counter or out):
        raise BadSetting(f"{'--counter' if counter else '--out'}: goes with --run, which names a run of workloads")
    if source and word is None:
        raise BadSetting(f"--source: goes with a word; write 'whorl report jobs --source {source}'")
    told = _figures_of_runs(call, source, run, counter or [], out) if run else _pages(call, word, source)
    if call.as_json:
        show_json(told)
    else:
        print(told["path"], *told.get("figures", []), sep="\n")


def _pages(call: "Invocation", word: Word | None, source: str | None) -> dict[str, Any]:
    """Write the site, or the page of one source; returns source and path."""
    from tasks.report.site import SiteParams, write_site, write_source

    warehouse, settings = call.warehouse, call.settings
    params = SiteParams(jobs=settings.jobs.report, workloads=settings.workloads.report)
    if word is None:
        from tasks.warehouse.connection import require

        require(warehouse)
        with progress_bar(call):
            return {"path": str(write_site(warehouse, params))}
    chosen = one_source(warehouse, source, word)
    with progress_bar(call):
        if word == "jobs":
            from flows.cli.jobs import fresh_summary

            fresh_summary(warehouse, chosen, settings.jobs.summary)
        return {"word": word, "source": chosen, "path": str(write_source(warehouse, word, chosen, params))}


def _figures_of_runs(
    call: "Invocation", source: str | None, runs: list[str], counters: list[str], out: Path | None
) -> dict[str, Any]:
    """Write figures of these runs; returns source, page and images."""
    from tasks.report.page import write_figures
    from tasks.report.result import Result
    from tasks.report.workloads_evaluation import METHOD
    from tasks.report.workloads_runs import run_figures

    warehouse = call.warehouse
    chosen = one_source(warehouse, source, "workloads")
    named = [part for run in runs for part in ("--run", run)]
    named += [part for one in counters for part in ("--counter", one)]
    words = ("whorl", "report", "workloads", "--source", chosen, *named, *(("--out", out) if out else ()))
    with progress_bar(call):
        figures, version = run_figures(warehouse, chosen, runs, counters, call.settings.workloads.report.n_counters)
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
    call: Invocation,
    port: int | None = None,
    reports_port: int | None = None,
    host: str = "127.0.0.1",
    limit: int = 2,
    stop: bool = False,
) -> None:
    """Run Prefect's server, its UI and a worker.

    With all flows registered, and the site of the home with its metrics beside them, until Ctrl-C or SIGTERM. It
    answers only who shows the key in api.key of the home folder, which also logs in to the UI.

    --port (0..65535): Port, instead of whorl.port; 0: a free one
    --reports-port (0..65535): Port of the pages, instead of whorl.reports_port; 0: a free one
    --host: Address to listen on; 0.0.0.0: all, for workers elsewhere
    --limit (1..): Flow runs at a time
    --stop: End what serves this home: whorl serve, or the server that commands share"""
    from flows.engine import serving

    if stop:
        ended = serving.stop_serving(call.warehouse.home)
        print(f"stopped process {ended.pid}, which served {ended.url}")
        return
    serving.serve(
        call.settings,
        host=host,
        port=port,
        reports_port=reports_port,
        limit=limit,
        say=lambda line: print(line, flush=True),
    )


def deploy(call: Invocation, api_url: str | None = None) -> None:
    """Register the flows with a Prefect server.

    Schedules come inactive; pool, limits and automation come with them. Twice is the same as once.

    --api-url: Address of the API, instead of PREFECT_API_URL or the running whorl serve"""
    call.prepare_client(api_url)
    from flows.engine import deploying  # not before: it imports prefect, which reads the environment then

    done = plain(deploying.deploy(call.settings, api_url))
    if call.as_json:
        show_json(done)
    else:
        show_table(done, DEPLOYED)


STATE_COLOURS = {"ok": "green", "missing": "yellow", "broken": "bold red"}
AREAS = ("whorl", "machine", "tools")
FINDINGS = columns(
    Column("state", "state", kind="name", style=lambda state: STATE_COLOURS[state]), ("name", "what", "name"),
    ("found", "found"), *extra(("purpose", "for")), ("fix", "what to do"),
)  # fmt: skip


def doctor(call: Invocation) -> None:
    """Say what this machine has and lacks.

    Exits with 1 only if whorl itself cannot work."""
    from tasks.doctor import examine
    from tasks.errors import WhorlError

    findings = examine(lambda: call.settings)
    with suppress(WhorlError):  # a wrong setting is among the findings already
        findings.append(_server(call.settings.warehouse.home))
    findings.sort(key=lambda one: AREAS.index(one.area))
    if call.as_json:
        show_json({"findings": findings})
    else:
        show_table(plain(findings), FINDINGS)
        missing = [one.fix.split()[-1] for one in findings if one.area == "tools" and one.state == "missing"]
        if missing:
            call.note(f"all missing tools at once, on Debian: apt-get install {' '.join(missing)}")
    if any(one.state == "broken" for one in findings):
        raise typer.Exit(1)


def _server(home: Path) -> "Finding":
    from flows.engine.servers import is_healthy, running_server
    from tasks.doctor import Finding
    from tasks.machine import read_server_file

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
