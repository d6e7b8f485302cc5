"""One call of the command line: which home, how talkative, and what follows from that."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

if TYPE_CHECKING:
    from tasks.settings import Resolved, Settings
    from tasks.warehouse.place import Warehouse


@dataclass(frozen=True)
class Invocation:
    """The options that all verbs share. home: absolute path, or None for that of the settings."""

    home: Path | None = None
    is_quiet: bool = False
    is_verbose: bool = False

    def resolved(self, flags: Mapping[str, Any] | None = None) -> "Resolved":
        """Settings with the place that set each of them; `flags`, by word, win. Raises BadSetting."""
        from tasks.settings import load_settings

        given = dict(flags or {})
        home = {"home": str(self.home)} if self.home else {}
        return load_settings({**given, "whorl": {**given.get("whorl", {}), **home}})

    @property
    def settings(self) -> "Settings":
        """The settings alone."""
        return self.resolved().settings

    @property
    def warehouse(self) -> "Warehouse":
        """The warehouse of the home folder."""
        return self.settings.warehouse

    def note(self, line: str) -> None:
        """Tell a person something that is no result: on stderr, and not with --quiet."""
        if not self.is_quiet:
            print(line, file=sys.stderr)

    def prepare_flows(self) -> None:
        """Set Prefect up for this home, with a server; call it before importing a flow: prefect reads the environment.

        Raises what check_home does, before a server is started, and NoServer."""
        from flows.home_server import ready_for_flows

        ready_for_flows(self._writable_home(), is_quiet=not self.is_verbose)

    def prepare_client(self, api_url: str | None = None) -> None:
        """Set Prefect up for a server that runs: that of api_url, PREFECT_API_URL or this home. Raises BadSetting."""
        from flows.environment import prepare

        prepare(self._writable_home(), is_quiet=not self.is_verbose, api_url=api_url)

    def _writable_home(self) -> Path:
        from tasks.warehouse.faults import check_home

        home = self.warehouse.home
        check_home(home)
        os.environ["WHORL_HOME"] = str(home)  # for processes that a flow starts
        return home


def invocation_of(context: typer.Context) -> Invocation:
    """What the root command made of the shared options."""
    return cast(Invocation, context.find_root().obj)
