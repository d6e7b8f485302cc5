"""One call of the command line: home, progress, options that verbs share, the source that is meant, flows it runs."""

import os
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from flows.cli.output import as_command, clean
from tasks.errors import ShowProgress, report_progress, shown_by
from tasks.quantities import counted

if TYPE_CHECKING:
    from tasks.errors import BadInput
    from tasks.report.result import Figure, Section
    from tasks.settings import Resolved, Settings
    from tasks.warehouse.place import Warehouse

Output = Generator[Any, None, None]  # of a verb: yields the object of --json, then prints it for people
LONGEST_WAIT_S = 0.3  # for the lock: a person waits with a half-written line
MOST = 500


SOURCES = "SELECT DISTINCT source FROM ops.files ORDER BY source"
RUN_IDS = "SELECT run_id FROM ops.runs ORDER BY started_at DESC"
# Of the source named so far, or of all sources.
JOB_KEYS = """
SELECT group_key FROM jobs.groups WHERE coalesce(source = $source, TRUE) ORDER BY n_finished DESC, group_key
"""


def offered(sql: str) -> Callable[[typer.Context], list[str]]:
    """What completes a half-written word: the first column of what is asked of the warehouse."""

    def column(context: typer.Context) -> list[str]:
        from tasks.errors import WhorlError
        from tasks.warehouse.connection import reading

        values = {"source": context.params.get("source")} if "$source" in sql else {}
        if (warehouse := _warehouse(context)) is None:
            return []
        try:
            with reading(warehouse) as connection:  # no frame: importing pandas would keep a half-written line waiting
                return [str(row[0]) for row in connection.execute(f"{sql} LIMIT {MOST}", values).fetchall()]
        except WhorlError:
            return []

    return column


def offered_model_ids(context: typer.Context) -> list[str]:
    """Ids of models, from the names of their folders."""
    home = _warehouse(context)
    return sorted({folder.name for folder in home.models.glob("*/[!.]*")}) if home else []


def offered_words() -> list[str]:
    """Words that have settings."""
    from tasks.settings import Settings

    return list(Settings.model_fields)


def offered_data_sets() -> list[str]:
    """Names of reference data sets."""
    from tasks.datasets import DATA_SETS

    return [data_set.name for data_set in DATA_SETS]


def _warehouse(context: typer.Context) -> "Warehouse | None":
    from tasks.errors import WhorlError

    home = context.find_root().params.get("home")
    try:
        warehouse = Invocation(home=Path.cwd() / home if home else None).warehouse
    except WhorlError:
        return None
    return warehouse.model_copy(update={"lock_wait_s": LONGEST_WAIT_S})


def source_with_rows(warehouse: "Warehouse", source: str | None, word: str = "jobs") -> str:
    """The named source, or the only one with rows of a word. Raises as source_of."""
    from tasks.warehouse.sources import source_of

    return source_of(warehouse, word, source)


def source_with_runs(warehouse: "Warehouse", source: str | None) -> str:
    """As source_with_rows; it must have runs of one kind, so that this is told before Prefect is started.

    Raises as refuse_mixture too."""
    from tasks.jobs.summary import refuse_mixture
    from tasks.warehouse.connection import reading

    source_name = source_with_rows(warehouse, source)
    with reading(warehouse) as connection:
        refuse_mixture(connection, source_name)
    return source_name


SAY_OTHERWISE = "say otherwise with --map OURS=THEIRS (and, of jobs, --unit, --map-value)"
NOT_OF_COLUMNS = ("with the sections of ", "start ")  # how lines begin that no --map changes


def note_understood(note: Callable[[str], None], path: str, lines: Sequence[str]) -> None:
    """Say what a file and its columns were taken for, where its names and words are not ours."""
    if lines:
        hint = [] if all(line.startswith(NOT_OF_COLUMNS) for line in lines) else [SAY_OTHERWISE]
        note("\n".join([f"{clean(Path(path).name)}:", *(f"  {clean(line)}" for line in (*lines, *hint))]))


def refuse_unreadable(
    files: Sequence[str], begin: Callable[[str], Sequence[str]], note: Callable[[str], None]
) -> Sequence[str]:
    """Refuse files of which none can be read, before Prefect is started: a line for each but the last, which is raised.

    begin: reads the beginning of a file, and raises BadInput for one that is wrong as a whole; what it understood of
    the first is told by `note`, and given back. Servers are not asked: that is left to the flow, which has keys."""
    from tasks.errors import BadInput

    refused: list[BadInput] = []
    for file in files:
        if file.startswith(("http://", "https://")):
            break
        try:
            understood = begin(file)
        except BadInput as error:
            refused.append(error)
        else:
            note_understood(note, file, understood)
            return understood
    else:
        raise_last(refused)
    return ()


def raise_last(refused: "Sequence[BadInput]") -> None:
    """Tell what is wrong with each file: a line for each but the last, which is raised."""
    for problem in refused[:-1]:
        print(f"whorl: {clean(str(problem))}", file=sys.stderr)
    if refused:
        raise refused[-1]


def shape_numbers(text: str | None, *, least: int = 1) -> tuple[int, ...]:
    """The numbers of `0,3`; none for no text. Raises BadParameter for fewer, more than two, or what is none."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts) or not least <= len(parts) <= 2:
        how_many = "two numbers" if least == 2 else "one or two numbers"
        raise typer.BadParameter(f"{text!r}; expected {how_many} of shapes, such as 0,3", param_hint="--shapes")
    return tuple(map(int, parts))


def given(**flags: Any) -> dict[str, Any]:
    """The flags that the user has given, as keys of settings."""
    return {name: value for name, value in flags.items() if value is not None}


MINUTE_S = 60.0


@dataclass(frozen=True)
class Invocation:
    """The options that all verbs share. home: absolute path, or None for that of the settings; asked: the command as it
    was given, which pages name to be made again."""

    home: Path | None = None
    is_quiet: bool = False
    is_verbose: bool = False
    as_json: bool = False
    asked: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)

    def having(self, flags: Mapping[str, Any]) -> "Invocation":
        """The same with settings that the user has given, nested like the settings; they win over all others."""
        from tasks.settings import overlaid

        return replace(self, flags=overlaid(dict(self.flags), flags))

    @cached_property
    def resolved(self) -> "Resolved":
        """Settings with the place that set each of them. Raises BadSetting."""
        from tasks.settings import load_settings, overlaid

        return load_settings(overlaid(dict(self.flags), {"whorl": {"home": str(self.home)}} if self.home else {}))

    @property
    def settings(self) -> "Settings":
        """The settings alone."""
        return self.resolved.settings

    @property
    def warehouse(self) -> "Warehouse":
        """The warehouse of the home folder."""
        return self.settings.warehouse

    def note(self, line: str) -> None:
        """Tell a person something that is no result: on stderr, and not with --quiet."""
        if not self.is_quiet:
            sys.stdout.flush()
            print(line, file=sys.stderr)

    def go_on(self, word: str, verb: str, *what: object, source: str | None, report: str = "") -> None:
        """Print where the report is, and tell the command to go on with."""
        if report:
            print(f"report: {report}")
        of = () if source is None else ("--source", source)
        self.note(f"next: {as_command('whorl', word, verb, *what, *of)}")

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


EVERY_S = 30  # how often a line says how far a step is, where there is no terminal


@contextmanager
def progress_bar(call: Invocation, *, first: str = "") -> Iterator[None]:
    """Within the block, what steps report as progress is shown; nothing with --quiet.

    first: what a bar shows until the first report. One bar at a time: that of the latest report."""
    if call.is_quiet:
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


def _lines() -> ShowProgress:
    """Prints a line when a step begins, the same step once, and now and then how far work is; with the time passed."""
    started, begun, shown_at_s = time.monotonic(), set[str](), 0.0

    def show(what: str, done: float, total: float | None) -> None:
        nonlocal shown_at_s
        passed = time.monotonic() - started
        is_new = not done and what not in begun
        if is_new or passed - shown_at_s >= EVERY_S:
            line = clean(f"{what} {_amount(done, total)}".rstrip())
            print(f"{passed:4.0f} s  {line}", file=sys.stderr, flush=True)
            begun.add(what)
            shown_at_s = passed

    return show


def _amount(done: float, total: float | None) -> str:
    return f"{done:,.0f} of {total:,.0f}" if total and done else f"{done:,.0f}" if done else ""


def run_flow(call: Invocation, name: str, /, **parameters: Any) -> Any:
    """The result of a flow of this home, such as jobs-train; what it prints goes to stderr.

    parameters: the others are those of the settings. Raises WhorlError."""
    with progress_bar(call), redirect_stdout(sys.stderr):
        report_progress("starting Prefect", 0)
        call.prepare_flows()
        from flows.engine import forms  # not before: prefect reads the environment when it is imported

        return forms.run_flow(name, call.settings, **parameters)


def write_drawing(
    call: Invocation,
    out: Path,
    name: str,
    words: tuple[str, str],
    figures: "Sequence[Figure]",
    made_of: str,
    sections: "Sequence[Section]" = (),
) -> None:
    """Write figures about jobs as a page of this name and as images, and say where they are. words: title, answer."""
    from tasks.report.jobs_variation import METHOD
    from tasks.report.page import write_figures
    from tasks.report.result import Result

    drawn, more = tuple(figures), tuple(sections)
    result = Result(*words, figures=drawn, made_of=made_of, again=call.asked, sections=more, method=METHOD)
    page, *images = write_figures(out, name, result)
    call.note(f"written: {page} and {counted(len(images), 'image')} beside it")
