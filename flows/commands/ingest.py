"""`whorl jobs ingest`: job logs into the warehouse, or only a look at what they would give."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.file_results import file_results, not_loaded, partly, read_results, show_files, show_read
from flows.commands.options import Json
from flows.commands.reading_options import (
    DryRun,
    Features,
    GroupBy,
    KeptUnder,
    MappedValues,
    MaxRefusedShare,
    Pseudonymise,
    Renamed,
    Units,
    absolute_paths,
    intake_flags,
    listed,
    refuse_unreadable,
    renamed_columns,
    table_flags,
)
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import as_command
from tasks.jobs.offered_names import AUTO, ReaderName, reader_asked_for
from tasks.source_names import DEFAULT_SOURCE, checked_source

if TYPE_CHECKING:
    from flows.job_results import Ingested
    from tasks.settings import Settings


def ingest(
    context: typer.Context,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Job logs: files, folders, or the address of a Prefect API")
    ],
    source: KeptUnder = DEFAULT_SOURCE,
    reader: Annotated[ReaderName, typer.Option(help="Format; auto looks into each file")] = AUTO,
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone of logs that name none, such as Europe/Berlin", show_default=False)
    ] = None,
    renamed: Renamed = None,
    statuses: MappedValues = None,
    units: Units = None,
    features: Features = None,
    group_by: GroupBy = None,
    max_refused_share: MaxRefusedShare = None,
    pseudonymise: Pseudonymise = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Read job logs into the warehouse.

    The recurring jobs of the source are summarised afterwards. The same file twice adds nothing."""
    invocation, source = invocation_of(context), checked_source(source)
    read = read_flags(time_zone, renamed, statuses, units) | intake_flags(max_refused_share, pseudonymise=pseudonymise)
    flags = {"jobs": {"read": read | listed("features", features), "group": listed("by", group_by)}}
    absolute = absolute_paths(paths)
    if dry_run:
        _look(invocation, absolute, reader, flags, as_json=as_json)
    else:
        _run(invocation, absolute, source, reader, flags, as_json=as_json)


def read_flags(
    time_zone: str | None, renamed: list[str] | None, statuses: list[str] | None, units: list[str] | None
) -> dict[str, Any]:
    """Flags of the command line as settings of jobs.read. Raises BadParameter for a --map and the like that is none."""
    columns = renamed_columns(renamed, "run_id=job")
    return {
        **({"time_zone": time_zone} if time_zone is not None else {}),
        **({"columns": columns} if columns else {}),
        **table_flags(statuses, units),
    }


def _run(
    invocation: Invocation, paths: list[str], source: str, reader: ReaderName, flags: dict[str, Any], *, as_json: bool
) -> None:
    from flows.machine_output import show_json
    from tasks.jobs.intake import (
        Intake,
        begin_log,
        find_logs,
    )

    settings = invocation.resolved(flags).settings
    intake = Intake(source, reader_asked_for(reader), settings.jobs.read, settings.jobs.group)
    refuse_unreadable(find_logs(paths), lambda path: begin_log(path, intake))
    found, failed = partly(lambda: _ingested(invocation, settings, paths, source, reader))
    results = file_results if found["data_version"] else read_results
    result = results(settings.warehouse, source, found["batches"]) | {
        "data_version": found["data_version"],
        "report": found["report"],
        **not_loaded(failed),
    }
    if as_json:
        show_json(result)
    elif not found["data_version"]:
        show_read(result)
    else:
        show_files(result)
        print(f"report: {found['report']}")
        invocation.note(f"next: {as_command('whorl', 'jobs', 'summary', '--source', source)}")
    if failed:
        raise failed


def _ingested(
    invocation: Invocation, settings: "Settings", paths: list[str], source: str, reader: ReaderName
) -> "Ingested":
    jobs = settings.jobs
    with flow_running(invocation):
        from flows.job_params import IngestParams
        from flows.jobs import ingest_jobs

        return ingest_jobs(
            IngestParams(
                paths=paths,
                source=source,
                reader=reader,
                read=jobs.read,
                group=jobs.group,
                summary=jobs.summary,
                warehouse=settings.warehouse,
            )
        )


def _look(
    invocation: Invocation, paths: list[str], reader: ReaderName, flags: dict[str, Any], *, as_json: bool
) -> None:
    from flows.commands.dry_run import look
    from flows.environment import prepare
    from tasks.jobs.intake import (
        Intake,
        find_logs,
        preview_log,
    )

    settings = invocation.resolved(flags).settings
    intake = Intake("", reader_asked_for(reader), settings.jobs.read, settings.jobs.group)
    logs = find_logs(paths)
    if any("://" in log for log in logs):
        prepare(invocation.warehouse.home)  # a server of this home wants to see its key
    look(
        invocation,
        logs,
        lambda path: preview_log(settings.warehouse.home, path, intake),
        settings.jobs.read.limits.max_refused_share,
        as_json=as_json,
    )
