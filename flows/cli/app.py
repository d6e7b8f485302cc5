"""The tree of commands: `whorl <word> <verb>`. It imports neither settings nor prefect: a verb does, when it runs."""

import logging
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option
from typer.core import TyperArgument, TyperGroup

from flows.cli import admin, advice, data, demo, jobs, jobs_answers, nodes, nodes_verdicts, workloads
from flows.cli.invocation import Invocation
from flows.cli.options import command_of, listed
from flows.cli.output import as_command

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

WITH_VALUE, WITHOUT_VALUE = ("--home",), ("-q", "--quiet", "-v", "--verbose")
TITLE = "Fingerprints for big-data infrastructure: nodes, workloads, recurring jobs, and advice on machines."
EPILOG = "Every setting has its place in conf/; 'whorl config' shows each of them and where its value came from."
NOTE, LOG_LINE = "%(message)s", "%(name)s: %(message)s"  # what a person is told; the log of the work, with --verbose
WRONG_USAGE = 2
COMPLETING = "_WHORL_COMPLETE"  # set by a shell that completes a line
WHOLE = 1_000  # characters of a sentence, none of which is cut

VERBS = (demo.demo, admin.pipeline, admin.report, data.query, data.config, admin.doctor, admin.serve, admin.deploy)
# Of each group what it is about, where its verbs stand, and their names in the order of the help.
GROUPS: dict[str, tuple[str, tuple[ModuleType, ...], str]] = {
    "jobs": (
        "Recurring jobs: how will the next run vary, why, and what would reduce it?",
        (jobs, jobs_answers),
        "ingest summary watch characterise train predict explain whatif evaluate record",
    ),
    "workloads": (
        "Workloads: what is running on this machine, known or unknown?",
        (workloads,),
        "ingest fingerprint clusters train identify watch changepoints evaluate record",
    ),
    "nodes": (
        "Nodes: how good is each in each resource, and is it degrading?",
        (nodes, nodes_verdicts),
        "record ingest summary preprocess metrics rank train tune fingerprint watch explain evaluate report",
    ),
    "advice": (
        "Advice: which machines and cluster sizes should I use?",
        (advice,),
        "search evaluate estimate choose record groups",
    ),
    "runs": ("Runs of flows: what was asked, what was found", (admin,), "list_runs show compare"),
    "models": ("Trained models, and which of them is in use", (admin,), "list_models promote rollback"),
    "warehouse": (
        "Copies of the warehouse, rebuilding, tidying up",
        (data,),
        "snapshot rebuild backup restore prune hashes dictionary",
    ),
    "datasets": ("Public reference data, and fetching it", (data,), "list_data_sets fetch"),
}


def run_app(arguments: list[str]) -> None:
    """Run one command; ends with SystemExit, or with the error of the command."""
    ordered = hoisted(arguments)
    words = [word for before, word in zip(["", *ordered], ordered, strict=False) if before not in WITH_VALUE]
    command = next((word for word in words if not word.startswith("-")), "")
    is_rich = sys.stdout.isatty() and sys.stderr.isatty()
    app = build_app(is_rich=is_rich, only=None if COMPLETING in os.environ else command)
    app(args=ordered, prog_name="whorl", obj=as_command("whorl", *arguments))


def hoisted(arguments: list[str]) -> list[str]:
    """The shared options first, wherever the user wrote them: `whorl runs list --home X` works as well."""
    ours: list[str] = []
    rest: list[str] = []
    waiting = list(arguments)
    while waiting and waiting[0] != "--":
        argument = waiting.pop(0)
        if argument in WITHOUT_VALUE or argument.startswith("--home="):
            ours.append(argument)
        elif argument in WITH_VALUE and waiting:
            ours += [argument, waiting.pop(0)]
        else:
            rest.append(argument)
    return [*ours, *rest, *waiting]


def build_app(*, is_rich: bool = False, only: str | None = None) -> typer.Typer:
    """All commands; help and usage errors are drawn with rich on a terminal and are plain elsewhere.

    only: the group or verb that is asked for, which is made in whole; of others no more than a list of them shows."""
    app = typer.Typer(
        name="whorl",
        cls=CommandGroup,
        help=TITLE,
        epilog=EPILOG,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if is_rich else None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=TITLE, epilog=EPILOG)(shared_options)
    for name, (title, modules, verbs) in GROUPS.items():
        group = typer.Typer(help=title, no_args_is_help=True)
        for verb in verbs.split() if only in (None, name) else ():
            function = next(getattr(module, verb) for module in modules if hasattr(module, verb))
            group.command(verb.partition("_")[0])(command_of(function, name))
        app.add_typer(group, name=name, cls=CommandGroup)
    for function in VERBS:
        app.command()(command_of(function) if only in (None, function.__name__) else listed(function))
    return app


class CommandGroup(TyperGroup):
    """Commands with the whole first sentence of their help, and arguments without the type that Python has for them."""

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the list of commands; a sentence that is longer than the line goes on in the next one."""
        named = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(WHOLE)) for name, command in named if command])

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":
        """The command of that name."""
        command = super().get_command(ctx, cmd_name)
        for parameter in command.params if command else ():
            if isinstance(parameter, TyperArgument) and parameter.metavar:
                parameter.display_type_rich = lambda **_: None  # type: ignore[method-assign]  # the metavar says it
        return command


def shared_options(
    context: typer.Context,
    home: Annotated[
        Path | None, Option(metavar="PATH", help="Home folder, instead of WHORL_HOME and conf/whorl.yaml")
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Only results and errors: no notes, no bars")] = False,
    verbose: Annotated[bool, Option("--verbose", "-v", help="Show the log of the work, and tracebacks")] = False,
    version: Annotated[bool, Option("--version", help="Show the version and exit")] = False,
) -> None:
    """Take the options that all verbs share; they may stand before or after the verb."""
    if version:
        from importlib import metadata

        print(f"whorl {metadata.version('whorl')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(WRONG_USAGE)
    place = Path.cwd() / home.expanduser() if home else None
    context.obj = Invocation(home=place, is_quiet=quiet, is_verbose=verbose, asked=context.obj or "")
    show_log(logging.INFO if verbose else logging.ERROR if quiet else logging.WARNING)


def show_log(level: int) -> None:
    """Print what whorl's own code logs on stderr, from this level on; what libraries log is left as it is."""
    handler = StderrHandler(level)
    handler.setFormatter(logging.Formatter(LOG_LINE if level <= logging.INFO else NOTE))
    for package in ("tasks", "flows"):
        logger = logging.getLogger(package)
        logger.handlers = [old for old in logger.handlers if not isinstance(old, StderrHandler)] + [handler]
        logger.setLevel(min(level, logging.WARNING))


class StderrHandler(logging.Handler):
    """Prints to what sys.stderr is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        print(self.format(record), file=sys.stderr)
