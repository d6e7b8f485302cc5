"""`whorl workloads ingest`: telemetry into the warehouse."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.file_results import not_loaded, partly, read_results, show_read
from flows.commands.options import Json
from flows.commands.reading_options import (
    DryRun,
    KeptUnder,
    MaxRefusedShare,
    Pseudonymise,
    Renamed,
    TimeZone,
    absolute_paths,
    intake_flags,
    refuse_unreadable,
)
from flows.commands.workloads_options import LabelFrom, Manifest, read_flags
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import as_command, counted
from tasks.source_names import DEFAULT_SOURCE, checked_source
from tasks.workloads.reader_names import AUTO, TelemetryReader, reader_asked_for

if TYPE_CHECKING:
    from flows.workload_results import TelemetryIngested
    from tasks.settings import Settings
    from tasks.warehouse.place import Warehouse


def ingest(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Telemetry: files, folders, or the address of a Prometheus server",
            show_default=False,
        ),
    ] = None,
    source: KeptUnder = DEFAULT_SOURCE,
    reader: Annotated[TelemetryReader, typer.Option(help="Format; auto looks into each file")] = AUTO,
    label_from: LabelFrom = None,
    manifest: Manifest = None,
    renamed: Renamed = None,
    time_zone: TimeZone = None,
    max_refused_share: MaxRefusedShare = None,
    pseudonymise: Pseudonymise = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Read telemetry into the warehouse.

    The same file twice adds nothing. Labels come from the columns of the files, from --label-from, or from a manifest,
    which may also name the files."""
    from tasks.workloads.intake import Intake, begin_telemetry, find_files

    invocation, source = invocation_of(context), checked_source(source)
    if not paths and manifest is None:
        raise typer.BadParameter("name files, folders or an address, or a --manifest that does", param_hint="PATH...")
    asked = intake_flags(max_refused_share, pseudonymise=pseudonymise)
    read = read_flags(label_from, manifest, renamed, time_zone) | asked
    settings = invocation.resolved({"workloads": {"read": read}}).settings
    absolute = absolute_paths(paths)
    files = find_files(absolute, settings.workloads.read.manifest)
    if dry_run:
        _look(invocation, settings, files, reader, as_json=as_json)
        return
    intake = Intake(source, reader_asked_for(reader), settings.workloads.read)
    refuse_unreadable(files, lambda path: begin_telemetry(path, intake))
    found, failed = partly(lambda: _ingested(invocation, settings, absolute, source, reader))
    result = _results(settings.warehouse, source, found) | not_loaded(failed)
    if as_json:
        from flows.machine_output import show_json

        show_json(result)
    elif result["files"]:
        show_read(result)
        print(f"{counted(result['n_runs'], 'run')} in source {source}, {result['n_labelled']:,} with a label")
        invocation.note(f"next: {_next(settings.warehouse, source, result['n_labelled'])}")
    if failed:
        raise failed


def _look(
    invocation: Invocation, settings: "Settings", files: list[str], reader: TelemetryReader, *, as_json: bool
) -> None:
    from flows.commands.dry_run import look
    from tasks.workloads.intake import Intake, preview_telemetry

    intake = Intake("", reader_asked_for(reader), settings.workloads.read)
    most = intake.read.limits.max_refused_share
    home = settings.warehouse.home
    look(invocation, files, lambda path: preview_telemetry(home, path, intake), most, as_json=as_json)


def _next(warehouse: "Warehouse", source: str, n_labelled: int) -> str:
    """The command to go on with: runs without a label teach nothing, but have phases, and may be what is known."""
    if n_labelled:
        return as_command("whorl", "workloads", "train", "--source", source)
    from tasks.workloads.champions import sources_with_model

    models = sources_with_model(warehouse)
    if source in models:
        return as_command("whorl", "workloads", "identify", "RUN", "--source", source)
    others = [as_command("whorl", "workloads", "identify", "FILE", "--source", one) for one in models[:1]]
    return " or ".join([as_command("whorl", "workloads", "fingerprint", "--source", source), *others])


def _ingested(
    invocation: Invocation, settings: "Settings", paths: list[str], source: str, reader: TelemetryReader
) -> "TelemetryIngested":
    with flow_running(invocation):
        from flows.workload_params import WorkloadIngestParams
        from flows.workloads import ingest_workloads

        return ingest_workloads(
            WorkloadIngestParams(
                telemetry=paths,
                source=source,
                reader=reader,
                read=settings.workloads.read,
                warehouse=settings.warehouse,
            )
        )


def _results(warehouse: "Warehouse", source: str, found: "TelemetryIngested") -> dict[str, Any]:
    """Files and most frequent reasons of refusal of this ingest, and how many runs the whole source has."""
    from tasks.warehouse.connection import fetch

    if not found["batches"]:
        return read_results(warehouse, source, []) | {"n_runs": 0, "n_labelled": 0}
    totals = fetch(
        warehouse,
        "SELECT count(*) AS n_runs, count(workload) AS n_labelled FROM workloads.runs WHERE source = $source",
        {"source": source},
    )
    return read_results(warehouse, source, found["batches"]) | {
        "n_runs": int(totals["n_runs"].iloc[0]),
        "n_labelled": int(totals["n_labelled"].iloc[0]),
    }
