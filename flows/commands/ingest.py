"""`whorl jobs ingest`: job logs into the warehouse, or only a look at what they would give."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.file_results import file_results, show_files
from flows.commands.options import Json
from flows.commands.reading_options import KeptUnder, Renamed, absolute_paths, refuse_unreadable, renamed_columns
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import as_command, clean
from tasks.jobs.reader_names import AUTO, ReaderName, reader_asked_for
from tasks.source_names import DEFAULT_SOURCE, checked_source

if TYPE_CHECKING:
    from flows.job_results import Ingested
    from tasks.settings import Settings


def ingest(
    context: typer.Context,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Job logs: files, folders, or the address of a Prefect API")
    ],
    source: KeptUnder = DEFAULT_SOURCE,
    reader: Annotated[ReaderName, typer.Option(help="Format; auto looks into each file")] = AUTO,
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone of logs that name none, such as Europe/Berlin", show_default=False)
    ] = None,
    renamed: Renamed = None,
    pseudonymise: Annotated[
        bool,
        typer.Option(
            "--pseudonymise",
            help="Replace users, names, hosts and ids made of names by keyed hashes before anything is kept",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be read, kept and refused; keep nothing")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read job logs into the warehouse.

    The recurring jobs of the source are summarised afterwards. The same file twice adds nothing."""
    invocation, source = invocation_of(context), checked_source(source)
    flags = {"jobs": {"read": read_flags(time_zone, renamed or [], pseudonymise=pseudonymise)}}
    absolute = absolute_paths(paths)
    if dry_run:
        _look(invocation, absolute, reader, flags, as_json=as_json)
    else:
        _run(invocation, absolute, source, reader, flags, as_json=as_json)


def read_flags(time_zone: str | None, renamed: list[str], *, pseudonymise: bool) -> dict[str, Any]:
    """Flags of the command line as settings of jobs.read. Raises BadParameter for a --map that is none."""
    columns = renamed_columns(renamed, "run_id=job")
    return {
        **({"time_zone": time_zone} if time_zone is not None else {}),
        **({"columns": columns} if columns else {}),
        **({"pseudonymise": True} if pseudonymise else {}),
    }


def _run(
    invocation: Invocation, paths: list[str], source: str, reader: ReaderName, flags: dict[str, Any], *, as_json: bool
) -> None:
    from flows.machine_output import show_json
    from tasks.jobs.intake import Intake, begin_log, find_logs

    settings = invocation.resolved(flags).settings
    intake = Intake(source, reader_asked_for(reader), settings.jobs.read, settings.jobs.group)
    refuse_unreadable(find_logs(paths), lambda path: begin_log(path, intake))
    found = _ingested(invocation, settings, paths, source, reader)
    result = file_results(settings.warehouse, source, found["batches"]) | {
        "data_version": found["data_version"],
        "report": found["report"],
        "predictions_report": found["predictions_report"],
    }
    if as_json:
        show_json(result)
        return
    show_files(result)
    print(f"report: {found['report']}")
    if found["predictions_report"]:
        print(f"what comes next: {found['predictions_report']}")
    invocation.note(f"next: {as_command('whorl', 'jobs', 'summary', '--source', source)}")


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
                report=jobs.report,
                warehouse=settings.warehouse,
            )
        )


def _look(
    invocation: Invocation, paths: list[str], reader: ReaderName, flags: dict[str, Any], *, as_json: bool
) -> None:
    from flows.commands.dry_run import show_previews
    from flows.environment import prepare
    from flows.progress_bar import progress_bar
    from tasks.errors import BadInput
    from tasks.jobs.intake import Intake, find_logs
    from tasks.jobs.preview import preview_log

    jobs = invocation.resolved(flags).settings.jobs
    intake = Intake("", reader_asked_for(reader), jobs.read, jobs.group)
    logs = find_logs(paths)
    if any("://" in log for log in logs):
        prepare(invocation.warehouse.home)  # a server of this home wants to see its key
    previews, refused = [], []
    with progress_bar(invocation):
        for path in logs:
            try:
                previews.append(preview_log(path, intake))
            except BadInput as error:
                refused.append(error)
    if previews or as_json:
        show_previews(invocation, previews, as_json=as_json)
    for problem in refused[:-1]:
        print(f"whorl: {clean(str(problem))}", file=sys.stderr)
    if refused:
        raise refused[-1]
