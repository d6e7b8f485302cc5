"""`whorl workloads identify`: what a run was, known or unknown, or what runs on this machine now."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.options import Json, Source
from flows.commands.reading_options import Renamed
from flows.commands.workloads_identified import as_records, show_found
from flows.commands.workloads_options import LabelFrom, read_flags, source_with_model
from flows.invocation import Invocation, invocation_of
from tasks.workloads.reader_names import AUTO, TelemetryReader, reader_asked_for

if TYPE_CHECKING:
    from tasks.settings import Settings
    from tasks.workloads.telemetry import Telemetry

MATCHING = """
    SELECT run_id FROM workloads.runs WHERE source = $source AND starts_with(run_id, $text)
    ORDER BY run_id <> $text, run_id
"""
N_NAMED = 5  # ids that an error message names


def identify(
    context: typer.Context,
    what: Annotated[
        str | None,
        typer.Argument(metavar="RUN|FILE", help="Id of a run, or the beginning of it; or a file", show_default=False),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Record what runs now, and identify that")] = False,
    seconds: Annotated[float, typer.Option(min=5, max=3600, help="With --live: how long is recorded")] = 30,
    subject: Annotated[
        str,
        typer.Option(
            metavar="machine|PID|GROUP",
            help="With --live: beside the machine, whose counters: of a process, or of a control group by its path, "
            "unit, container or pod",
        ),
    ] = "machine",
    public: Annotated[
        list[str] | None,
        typer.Option("--public", metavar="WORKLOAD", help="Public workload that may stand for it; repeatable"),
    ] = None,
    source: Source = None,
    reader: Annotated[TelemetryReader, typer.Option(help="Format of a file; auto looks into it")] = AUTO,
    label_from: LabelFrom = None,
    renamed: Renamed = None,
    as_json: Json = False,
) -> None:
    """Say which workload it is, how sure that is, and why; an unknown one is told with what it is nearest to.

    By the model in use of the source. Nothing is kept; the flow workloads-identify keeps what it finds."""
    from tasks.workloads.champions import model_in_use
    from tasks.workloads.identifying import identify_each

    if (what is None) == (not live):
        raise typer.BadParameter("name a run or a file, or use --live, not both", param_hint="RUN|FILE")
    invocation = invocation_of(context)
    settings = invocation.resolved({"workloads": {"read": read_flags(label_from, None, renamed)}}).settings
    chosen = source_with_model(settings.warehouse, source)
    card, model = model_in_use(settings.warehouse, chosen)  # before anything is recorded for it
    if what is None:
        runs = [_live(invocation, settings, subject, seconds)]
    else:
        runs = _runs(settings, chosen, what, reader_asked_for(reader))
    found = identify_each(runs, card, model)
    if found.refused and not found.found:
        raise found.refused[0]
    rows = as_records(found, runs, public)
    if as_json:
        from flows.machine_output import show_json

        refused = [str(error) for error in found.refused]
        show_json({"source": chosen, "model_id": found.model_id, "runs": rows, "refused": refused})
        return
    show_found(rows)
    for error in found.refused:
        invocation.note(f"not identified: {error}")


def _live(invocation: Invocation, settings: "Settings", subject: str, seconds: float) -> "Telemetry":
    from tasks.workloads.record.live import record_live

    invocation.note(f"recording {subject} for {seconds:g} s")
    return record_live(subject, seconds, settings.workloads.record)


def _runs(settings: "Settings", source: str, what: str, reader: str) -> "list[Telemetry]":
    """The runs of a file or an address, or the run of the warehouse that is called so. Raises NotFound, BadInput."""
    from pathlib import Path

    from tasks.workloads.intake import read_telemetry
    from tasks.workloads.stored import fetch_runs

    if "://" in what or Path(what).exists():
        path = what if "://" in what else str(Path(what).absolute())
        runs = read_telemetry([path], settings.workloads.read, reader)
        if not runs:
            from tasks.errors import BadInput

            raise BadInput(path, "no run in it that can be used", "telemetry", "read.regular says what is too short")
        return runs
    return fetch_runs(settings.warehouse, source, [one_telemetry_run(settings, source, what)])


def one_telemetry_run(settings: "Settings", source: str, text: str) -> str:
    """The id of the one run of a source that is called so or begins so. Raises NotFound."""
    from tasks.errors import NotFound
    from tasks.warehouse.connection import fetch

    found: list[Any] = fetch(settings.warehouse, MATCHING, {"source": source, "text": text})["run_id"].to_list()
    if not found:
        raise NotFound(f"{text}: no file, and no run of source {source!r} begins so")
    if len(found) > 1 and found[0] != text:
        rest = f" and {len(found) - N_NAMED:,} more" if len(found) > N_NAMED else ""
        names = ", ".join(found[:N_NAMED])
        raise NotFound(f"run {text!r}: {len(found):,} runs begin so: {names}{rest}; give more of the id")
    return str(found[0])
