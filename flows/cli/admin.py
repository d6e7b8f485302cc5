"""`whorl report`, `serve`, `deploy`, `doctor`, `pipeline`, `runs`, `models`: the site of a home, its server and
flows, what these were asked and found, which model is in use, what is lacking."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from flows.cli.invocation import Invocation, Output, progress_bar, run_flow, source_with_rows
from flows.cli.output import PIPED, figure, moment, plain, setting, show_facts, show_table
from tasks.choices import DEFAULT_SOURCE, checked_source
from tasks.quantities import LEFT_OUT, counted, duration
from tasks.report.result import Column, Kind, as_text, columns, extra, records

if TYPE_CHECKING:
    from tasks.doctor import Finding, State

Word = Literal["jobs", "workloads", "nodes"]


def report(
    call: Invocation,
    word: Word | None = None,
    source: str | None = None,
    run: list[str] | None = None,
    counter: list[str] | None = None,
    out: Path | None = None,
) -> Output:
    """Write the site of the home and print where it begins.

    Its index says of each word what was found and what to do; each source has a page, and so has each job, workload and
    node. It needs no network. With a word: the page of one source. With --run, of workloads: runs over time with their
    change points, their phases, and each two at their best offset, as a page and as images.

    word: Only the page of a source of this word
    --source
    --run RUN_ID: Figures of this run, of workloads; once for each
    --counter NAME: With --run: draw this counter; by default those that moved most
    --out DIR: With --run: folder of the page and its images"""
    from tasks.errors import BadSetting

    if run and word != "workloads":
        raise BadSetting(f"--run: figures of runs are of workloads; write 'whorl report workloads --run {run[0]}'")
    if not run and (counter or out):
        raise BadSetting(f"{'--counter' if counter else '--out'}: goes with --run, which names a run of workloads")
    if source and word is None:
        raise BadSetting(f"--source: goes with a word; write 'whorl report jobs --source {source}'")
    page = _figures_of_runs(call, source, run, counter or [], out) if run else _pages(call, word, source)
    yield page
    print(page["path"], *page.get("figures", []), sep="\n")


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
    source_name = source_with_rows(warehouse, source, word)
    with progress_bar(call):
        if word == "jobs":
            from flows.cli.jobs import fresh_summary

            fresh_summary(warehouse, source_name, settings.jobs.summary)
        return {"word": word, "source": source_name, "path": str(write_source(warehouse, word, source_name, params))}


def _figures_of_runs(
    call: "Invocation", source: str | None, runs: list[str], counters: list[str], out: Path | None
) -> dict[str, Any]:
    """Write figures of these runs; returns source, page and images."""
    from tasks.report.page import write_figures
    from tasks.report.result import Result
    from tasks.report.site import reports
    from tasks.report.workloads_evaluation import METHOD
    from tasks.report.workloads_runs import run_figures

    warehouse = call.warehouse
    source_name = source_with_rows(warehouse, source, "workloads")
    with progress_bar(call):
        figures, version = run_figures(
            warehouse, source_name, runs, counters, call.settings.workloads.report.n_counters
        )
        result = Result(
            f"Runs of workloads: {source_name}",
            ", ".join(runs),
            figures=tuple(figures),
            made_of=f"data version {version}",
            again=call.asked,
            method=METHOD,
        )
        page, *images = write_figures(out or reports(warehouse), f"workloads-{source_name}-runs", result)
    return {"word": "workloads", "source": source_name, "path": str(page), "figures": [str(image) for image in images]}


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


def deploy(call: Invocation, api_url: str | None = None) -> Output:
    """Register the flows with a Prefect server.

    Schedules come inactive; pool, limits and automation come with them. Twice is the same as once.

    --api-url: Address of the API, instead of PREFECT_API_URL or the running whorl serve"""
    call.prepare_client(api_url)
    from flows.engine import deploying  # not before: it imports prefect, which reads the environment then

    done = plain(deploying.deploy(call.settings, api_url))
    yield done
    show_table(done, DEPLOYED)


STATE_COLOURS = {"ok": "green", "missing": "yellow", "broken": "bold red"}
AREAS = ("whorl", "machine", "tools")
FINDINGS = columns(
    Column("state", "state", kind="name", style=lambda state: STATE_COLOURS[state]), ("name", "what", "name"),
    ("found", "found"), ("purpose", "for"), ("fix", "what to do"),
)  # fmt: skip


def doctor(call: Invocation) -> Output:
    """Say what this machine has and lacks.

    Exits with 1 only if whorl itself cannot work."""
    from tasks.doctor import examine
    from tasks.errors import WhorlError

    findings = examine(lambda: call.settings)
    with suppress(WhorlError):  # a wrong setting is among the findings already
        findings.append(_server(call.settings.warehouse.home))
    findings.sort(key=lambda finding: AREAS.index(finding.area))
    with suppress(GeneratorExit):  # told as JSON
        yield {"findings": findings}
        show_table(plain(findings), FINDINGS, piped_width=PIPED)
        if missing := [
            finding.fix.split()[-1] for finding in findings if finding.area == "tools" and finding.state == "missing"
        ]:
            call.note(f"all missing tools at once, on Debian: apt-get install {' '.join(missing)}")
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(1)


def _server(home: Path) -> "Finding":
    from flows.engine.servers import is_healthy, running_server
    from tasks.doctor import Finding
    from tasks.machine import read_server_file

    def found(state: "State", what: str, fix: str = "") -> Finding:
        purpose = "schedules, and verbs that change something start faster"
        return Finding("whorl", "Prefect server", state, what, purpose, fix)

    named, server = os.environ.get("PREFECT_API_URL"), read_server_file(home)
    if named and not is_healthy(named):
        return found("broken", f"{named} (PREFECT_API_URL) does not answer", "mend or unset PREFECT_API_URL")
    if not (url := named or running_server(home)):
        return found("missing", "none runs for this home", "whorl serve")
    if server and server.is_shared and server.url == url:
        return found("ok", f"{url}, which commands share, process {server.pid}; no schedules", "whorl serve")
    return found("ok", url)


RUNS = columns(
    ("run_id", "run", "key"), ("flow", "flow", "name"), ("source", "source", "key"),
    Column("status", "status", kind="name", style=lambda status: "red" if status == "failed" else "green"),
    ("started_at", "started (UTC)", moment), ("runtime_s", "took", duration),
    *extra(("data_version", "data version", "name"), ("code_version", "code version", "name")),
)  # fmt: skip
PARTS = columns(("part", "part", "name"), ("said", "what it says"))  # a node may also be a machine

N_LETTERS = 26
PIPELINED = ("jobs", "workloads", "nodes", "advice")


def pipeline(
    call: Invocation,
    source: list[str] | None = None,
    word: list[str] | None = None,
    trials: int = 0,
    network: bool = True,
    into: str = DEFAULT_SOURCE,
) -> Output:
    """Go from files to answers, of all words as one graph.

    What lies in the inboxes is read; then each source is preprocessed, learned, fingerprinted, clustered and answered.
    Only what has changed is done: data, settings, code, or what an earlier run had made and is gone.

    --source NAME: Only this source; once for each
    --word WORD: Only the part of jobs, workloads, nodes or advice; once for each
    --trials (0..): Trials of the search for Perona's network; 0: no search
    --network/--no-network: Train Perona's network, which makes fingerprints
    --into NAME: Source that the inboxes are read into, where it is answered"""
    if strange := set(word or ()) - set(PIPELINED):
        raise typer.BadParameter(f"{min(strange)!r} is none of {', '.join(PIPELINED)}", param_hint="--word")
    from tasks.warehouse.sources import require_sources

    require_sources(call.warehouse, PIPELINED[:-1], {*(source or ())} - {checked_source(into)})
    parameters = {"sources": tuple(source or ()), "inbox_source": into, "trials": trials, "trains_network": network}
    outcome = run_flow(call, "whorl-pipeline", **parameters, **({"words": tuple(word)} if word else {}))
    yield outcome
    show_table([{"part": name, "said": line} for name, line in outcome["said"].items()], PARTS)
    others = ", the others were as they are" if outcome["n_done"] < outcome["n_nodes"] else ""
    print(f"\n{outcome['n_done']} of {counted(outcome['n_nodes'], 'part')} done{others}")


def list_runs(call: Invocation, top: int = 20) -> Output:
    """List the latest runs.

    --top (1..): How many, the latest first"""
    from tasks.warehouse import runs

    rows = records(runs.list_runs(call.warehouse, limit=top))
    yield {"runs": rows}
    if rows:
        show_table(rows, RUNS)
    else:
        call.note("no flow has run yet in this home")


def show(call: Invocation, run: str) -> Output:
    """Show one run: parameters, figures, versions.

    run: Id of a run, or its beginning"""
    from tasks.settings import leaves
    from tasks.warehouse import runs

    record = runs.read_run(call.warehouse, run)
    yield record
    facts = {key: moment(value) if key.endswith("_at") else as_text(value) for key, value in record.items()}
    facts["took"] = duration((record["ended_at"] - record["started_at"]).total_seconds())
    for part, show_value in (("figures", figure), ("parameters", setting)):
        del facts[part]
        facts |= {f"{part}.{key}": show_value(value) for key, value in leaves(record[part]).items()}
    show_facts(facts)


def compare(call: Invocation, run: list[str]) -> Output:
    """Show where runs differ: parameters, and figures with the best marked by *.

    Times and paths are left out. For a notebook: compare_runs of tasks.warehouse.runs gives the same as a frame.

    RUN...: Ids of runs, or how they begin"""
    from tasks.errors import BadSetting
    from tasks.warehouse import runs

    ids = list(dict.fromkeys(runs.run_id_of(call.warehouse, run_id) for run_id in run))
    if len(run) < 2:
        raise BadSetting("runs: one alone; expected two or more to compare")
    rows = records(runs.compare_runs(call.warehouse, ids))
    differences = [
        {"key": row["key"], "values": [row[run_id] for run_id in ids], "best": row["best"] or None} for row in rows
    ]
    yield {"runs": ids, "differences": differences}
    if not rows:
        call.note("the runs differ in nothing")
        return
    names = {run_id: chr(ord("A") + at) if at < N_LETTERS else str(at + 1) for at, run_id in enumerate(ids)}
    show_facts({name: run_id for run_id, name in names.items()})
    print()
    shown = [
        {"key": row["key"]}
        | {run_id: f"{figure(row[run_id])}{' *' if row['best'] == run_id else ''}" for run_id in ids}
        for row in rows
    ]
    # words wrap
    kind: Kind = "text" if any(isinstance(row[run_id], str) for row in rows for run_id in ids) else "number"
    show_table(
        shown, (Column("key", "differs in"), *(Column(run_id, name, kind=kind) for run_id, name in names.items()))
    )
    call.note(f"{counted(len(rows), 'difference')}; * the best")


MOST_METRICS = 3
MODELS = columns(
    ("model_id", "model", "key"), ("word", "word", "name"), ("source", "source", "key"),
    ("kind", "kind", "key"),
    Column("is_champion", "in use", lambda is_champion: "yes" if is_champion else "", style=lambda _: "green"),
    *extra(("trained_at", "trained (UTC)", moment)),
    Column("metrics", "figures of its training", lambda all_: _first(all_)),
    *extra(("data_version", "data version", "name")),
)  # fmt: skip


def list_models(call: Invocation) -> Output:
    """List all models; one of each word, source and kind is in use: the champion."""
    from tasks.warehouse import registry

    folder = call.warehouse.models
    cards = registry.cards(folder)
    champions = {registry.champion_id(folder, card.word, card.source, card.kind) for card in cards}
    rows = [{**card.model_dump(exclude={"files"}), "is_champion": card.model_id in champions} for card in cards]
    yield {"models": rows}
    if rows:
        show_table(rows, MODELS)
    else:
        call.note(f"{folder}: no model has been trained yet, or none can be read")


def promote(call: Invocation, model: str, reason: str = "by hand") -> Output:
    """Put a model into use; the one before it can be brought back with rollback.

    model: Id of a model, or its beginning
    --reason: Why, for those who read the list of champions later"""
    from tasks.warehouse import registry
    from tasks.warehouse.runs import only_id, refuse_blank

    refuse_blank(model, f"model {model!r}: expected its id or the beginning of it; 'whorl models list' shows them")
    warehouse = call.warehouse
    words = {card.model_id: card.word for card in registry.cards(warehouse.models)}
    head, _, tail = model.partition(LEFT_OUT)
    fitting = sorted((name for name in words if name.startswith(head) and name.endswith(tail)), key=len)
    none = f"model {model!r}: not in {warehouse.models}; there are: {', '.join(words) or 'none'}"
    model_id = only_id(fitting, model, none, "model")
    yield from _show_champion(registry.promote(warehouse, words[model_id], model_id, reason).model_dump())


def rollback(call: Invocation, word: str, kind: str, source: str) -> Output:
    """Bring back the model that was in use before the present one.

    word: Word, such as jobs
    kind: Kind of model, as 'whorl models list' shows it
    --source, -s: Source"""
    from tasks.warehouse import registry

    decision = registry.roll_back(call.warehouse, word, checked_source(source), kind)
    yield from _show_champion(decision.model_dump())


def _first(metrics: dict[str, float]) -> str:
    """The first few of many metrics; a training puts those that matter most first."""
    texts = [f"{key} {metrics[key]:.4g}" for key in list(metrics)[:MOST_METRICS]]
    more = len(metrics) - len(texts)
    return ", ".join([*texts, *([f"{more:,} more"] if more > 0 else [])])


def _show_champion(decision: dict[str, object]) -> Output:
    yield decision
    kind, source, model = (as_text(decision[key]) for key in ("kind", "source", "model_id"))
    print(f"{kind} of source {source} is now {model} ({as_text(decision['reason'])})")
