"""`whorl serve` and `whorl deploy`: schedules and the Prefect UI."""

from typing import Annotated

import typer

from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.tables import Column, show_table

COLOURS = {"created": "green", "updated": "yellow", "unchanged": "dim"}
SHOWN = (
    Column("kind", "what", kind="name"),
    Column("name", "name", kind="name"),
    Column("change", "done", kind="name", style=lambda change: COLOURS[change]),
)


def add_commands(app: typer.Typer) -> None:
    """Add the two verbs to the root."""
    app.command()(serve)
    app.command()(deploy)


def serve(
    context: typer.Context,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port, instead of whorl.port; 0: a free one")
    ] = None,
    reports_port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port of the pages, instead of whorl.reports_port; 0: a free one"),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all, for workers elsewhere")] = "127.0.0.1",
    limit: Annotated[int, typer.Option(min=1, help="Flow runs at a time")] = 2,
) -> None:
    """Run Prefect's server, its UI and a worker.

    With all flows registered, and the site of the home with its metrics beside them, until Ctrl-C or SIGTERM. It
    answers only who shows the key in api.key of the home folder, which also logs in to the UI."""
    from flows import serve as serving

    settings = invocation_of(context).settings
    serving.serve(
        settings, host=host, port=port, reports_port=reports_port, limit=limit, say=lambda line: print(line, flush=True)
    )


def deploy(
    context: typer.Context,
    api_url: Annotated[
        str | None,
        typer.Option(help="Address of the API, instead of PREFECT_API_URL or the running whorl serve"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Register the flows with a Prefect server.

    Schedules come inactive; pool, limits and automation come with them. Twice is the same as once."""
    from flows.machine_output import plain, show_json

    invocation = invocation_of(context)
    invocation.prepare_client(api_url)
    from flows.deploy import deploy as register  # not before: it imports prefect, which reads the environment then

    done = plain(register(invocation.settings, api_url))
    if as_json:
        show_json(done)
    else:
        show_table(done, SHOWN)
