"""`whorl nodes ingest`: results of benchmarks into the warehouse."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.file_results import not_loaded, partly, read_results, show_read
from flows.commands.nodes_options import LabelFrom, Manifest, read_flags
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
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import as_command, counted
from tasks.nodes.reader_names import AUTO, NodeReader, reader_asked_for
from tasks.source_names import DEFAULT_SOURCE, checked_source

if TYPE_CHECKING:
    from flows.node_results import ResultsIngested
    from tasks.settings import Settings
    from tasks.warehouse.place import Warehouse

TOTALS = """
SELECT count(*) AS n_executions, count(DISTINCT node) AS n_nodes, count(*) FILTER (is_stressed) AS n_stressed,
    count(DISTINCT node) FILTER (is_emulated) AS n_emulated
FROM nodes.executions WHERE source = $source
"""


def ingest(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Results: files or folders; without any, what recorders have put into the landing folder",
            show_default=False,
        ),
    ] = None,
    source: KeptUnder = DEFAULT_SOURCE,
    reader: Annotated[NodeReader, typer.Option(help="Format; auto looks into each file")] = AUTO,
    label_from: LabelFrom = None,
    manifest: Manifest = None,
    renamed: Renamed = None,
    time_zone: TimeZone = None,
    max_refused_share: MaxRefusedShare = None,
    pseudonymise: Pseudonymise = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Read results of benchmarks into the warehouse.

    The same file twice adds nothing. Which node a file is of, and whether it was stressed, is said by its columns, by
    --label-from, or by a manifest, which may also name the files."""
    from tasks.nodes.intake import Intake, begin_executions, find_files, tell_left_out

    invocation, source = invocation_of(context), checked_source(source)
    asked = intake_flags(max_refused_share, pseudonymise=pseudonymise)
    read = read_flags(label_from, manifest, renamed, time_zone) | asked
    settings = invocation.resolved({"nodes": {"read": read}}).settings
    absolute = absolute_paths(paths)
    if not absolute and not manifest and (pseudonymise or dry_run):
        raise typer.BadParameter(
            "name files: what recorders have landed is written already, with its names", param_hint="PATH"
        )
    if absolute or manifest:
        files = find_files(absolute, settings.nodes.read.manifest)
        if not dry_run:
            intake = Intake(source, reader_asked_for(reader), settings.nodes.read)
            refuse_unreadable(files, lambda path: begin_executions(path, intake))
        if line := tell_left_out(absolute):
            invocation.note(line)
        if dry_run:
            _look(invocation, settings, files, reader, as_json=as_json)
            return
    found, failed = partly(lambda: _ingested(invocation, settings, absolute, source, reader))
    result = _results(settings.warehouse, source, found) | not_loaded(failed)
    if as_json:
        from flows.machine_output import show_json

        show_json(result)
    elif result["files"] or not failed:
        show_read(result)
        stressed = f", {result['n_stressed']:,} of them stressed" if result["n_stressed"] else ""
        emulated = f" ({result['n_emulated']:,} of them emulated)" if result["n_emulated"] else ""
        on = f"{counted(result['n_nodes'], 'node')}{emulated}"
        told = f"{counted(result['n_executions'], 'execution')} on {on}{stressed}"
        print(f"source {source}: {told}")
        invocation.note(f"next: {as_command('whorl', 'nodes', 'rank', '--source', source)}")
    if failed:
        raise failed


def _look(invocation: Invocation, settings: "Settings", files: list[str], reader: NodeReader, *, as_json: bool) -> None:
    from flows.commands.dry_run import look
    from tasks.nodes.intake import Intake, preview_executions

    intake = Intake("", reader_asked_for(reader), settings.nodes.read)
    most = intake.read.limits.max_refused_share
    home = settings.warehouse.home
    look(invocation, files, lambda path: preview_executions(home, path, intake), most, as_json=as_json)


def _ingested(
    invocation: Invocation, settings: "Settings", paths: list[str], source: str, reader: NodeReader
) -> "ResultsIngested":
    with flow_running(invocation):
        from flows.node_params import NodeIngestParams
        from flows.nodes import ingest_nodes

        return ingest_nodes(
            NodeIngestParams(
                results=paths,
                source=source,
                reader=reader,
                read=settings.nodes.read,
                warehouse=settings.warehouse,
            )
        )


def _results(warehouse: "Warehouse", source: str, found: "ResultsIngested") -> dict[str, Any]:
    """Files and most frequent reasons of refusal of this ingest, and what the whole source has."""
    from tasks.warehouse.connection import fetch

    if not warehouse.file.exists():  # there was nothing to read
        counts = dict.fromkeys(("n_executions", "n_nodes", "n_stressed", "n_emulated"), 0)
        return read_results(warehouse, source, []) | counts
    [totals] = fetch(warehouse, TOTALS, {"source": source}).to_dict("records")
    return read_results(warehouse, source, found["batches"]) | {str(key): int(value) for key, value in totals.items()}
