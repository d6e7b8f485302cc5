"""`whorl doctor`: what this machine has and lacks, what for, and what to do."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.tables import Column, show_table

if TYPE_CHECKING:
    from tasks.doctor import Finding

COLOURS = {"ok": "green", "missing": "yellow", "broken": "bold red"}
AREAS = ("whorl", "machine", "tools")
SHOWN = (
    Column("state", "state", kind="name", style=lambda state: COLOURS[state]),
    Column("name", "what", kind="name"),
    Column("found", "found"),
    Column("purpose", "for", is_extra=True),
    Column("fix", "what to do"),
)


def add_commands(app: typer.Typer) -> None:
    """Add the verb to the root."""
    app.command()(doctor)


def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Say what this machine has and lacks.

    Exits with 1 only if whorl itself cannot work."""
    from flows.machine_output import plain, show_json
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
        show_table(plain(findings), SHOWN)
        missing = [one.fix.split()[-1] for one in findings if one.area == "tools" and one.state == "missing"]
        if missing:
            invocation.note(f"all missing tools at once, on Debian: apt-get install {' '.join(missing)}")
    if any(one.state == "broken" for one in findings):
        raise typer.Exit(1)


def _server(home: Path) -> "Finding":
    from flows.server_file import is_healthy, running_server
    from tasks.doctor import Finding

    purpose = "schedules, and verbs that change something start faster"
    named = os.environ.get("PREFECT_API_URL")
    url = named if named and is_healthy(named) else None if named else running_server(home)
    if url:
        return Finding("whorl", "Prefect server", "ok", url, purpose)
    found = f"{named} (PREFECT_API_URL) does not answer" if named else "none runs for this home"
    fix = "mend or unset PREFECT_API_URL" if named else "whorl serve"
    return Finding("whorl", "Prefect server", "broken" if named else "missing", found, purpose, fix)
