"""One call of the command line: which home, how talkative, its progress, and flows run from it."""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from flows.cli.output import as_command, clean, counted
from tasks.progress import Show, report_progress, shown_by

if TYPE_CHECKING:
    from tasks.report.result import Figure, Section
    from tasks.settings import Resolved, Settings
    from tasks.warehouse.place import Warehouse

MINUTE_S = 60.0


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
        from flows.engine.shared_server import ready_for_flows

        idle_s = self.settings.whorl.server_idle_minutes * MINUTE_S
        ready_for_flows(self._writable_home(), idle_s=idle_s, is_quiet=not self.is_verbose)

    def prepare_client(self, api_url: str | None = None) -> None:
        """Set Prefect up for a server that runs: that of api_url, PREFECT_API_URL or this home. Raises BadSetting."""
        from flows.engine.servers import prepare

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


EVERY_S = 30  # how often a line says how far a step is, where there is no terminal


@contextmanager
def progress_bar(invocation: Invocation, *, first: str = "") -> Iterator[None]:
    """Within the block, what steps report as progress is shown; nothing with --quiet.

    first: what a bar shows until the first report. One bar at a time: that of the latest report."""
    if invocation.is_quiet:
        yield
        return
    if not sys.stderr.isatty():
        with shown_by(_lines()):
            yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    what, amount = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[shown]}")
    columns = (SpinnerColumn(), what, BarColumn(), amount, TimeElapsedColumn())
    bars: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def show(what: str, done: float, total: float | None) -> None:
            if what not in bars:
                for bar in bars.values():
                    progress.update(bar, visible=False)
                bars[what] = progress.add_task(what, total=total, shown="")
            progress.update(bars[what], completed=done, total=total, shown=_amount(done, total))

        if first:
            show(first, 0, None)
        with shown_by(show):
            yield


def _lines() -> Show:
    """Prints a line when a step begins, the same step once, and now and then how far work is; with the time passed."""
    started, begun, said = time.monotonic(), set[str](), 0.0

    def show(what: str, done: float, total: float | None) -> None:
        nonlocal said
        passed = time.monotonic() - started
        is_new = not done and what not in begun
        if is_new or passed - said >= EVERY_S:
            line = clean(f"{what} {_amount(done, total)}".rstrip())
            print(f"{passed:4.0f} s  {line}", file=sys.stderr, flush=True)
            begun.add(what)
            said = passed

    return show


def _amount(done: float, total: float | None) -> str:
    return f"{done:,.0f} of {total:,.0f}" if total and done else f"{done:,.0f}" if done else ""


def run_flow(invocation: Invocation, name: str, settings: "Settings", /, **own: Any) -> Any:
    """The result of a flow of this home, such as jobs-train; what it prints goes to stderr.

    own: parameters; the others are those of the settings. Raises WhorlError."""
    with progress_bar(invocation), redirect_stdout(sys.stderr):
        report_progress("starting Prefect", 0)
        invocation.prepare_flows()
        from flows.engine import forms  # not before: prefect reads the environment when it is imported

        return forms.run_flow(name, settings, **own)


def write_drawing(
    invocation: Invocation,
    out: Path,
    name: str,
    words: tuple[str, str],
    figures: "Sequence[Figure]",
    made_of: str,
    command: Sequence[object],
    sections: "Sequence[Section]" = (),
) -> None:
    """Write figures about jobs as a page of this name and as images, and say where they are.

    words: title and answer. command: what draws them again, but for the home and the folder."""
    from tasks.report.jobs_shapes import METHOD
    from tasks.report.page import write_figures
    from tasks.report.result import Result

    verb, *options = command
    again = as_command("whorl", "jobs", verb, "--home", invocation.warehouse.home, *options, "--out", out)
    result = Result(
        *words, figures=tuple(figures), sections=tuple(sections), made_of=made_of, again=again, method=METHOD
    )
    page, *images = write_figures(out, name, result)
    invocation.note(f"written: {page} and {counted(len(images), 'image')} beside it")
