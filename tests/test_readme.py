"""README.md: every command in it is one that the program takes, and every file that it names is there."""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from flows.app import build_app, hoisted

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
NAMED = re.findall(r"\b((?:tasks|flows|tests|data|deployments|conf)/[\w./-]+\.(?:md|py|yaml))", README)


@cache
def program() -> Any:
    """The tree of commands."""
    return typer.main.get_command(build_app())


def parsed(line: str) -> str:
    """The name of the innermost command that takes these arguments; nothing is run."""
    command, name, rest = program(), "whorl", hoisted(shlex.split(line))
    while True:
        context = command.make_context(name, list(rest))
        if not hasattr(command, "resolve_command"):
            return name
        arguments = [*context._protected_args, *context.args]
        name, found, rest = command.resolve_command(context, arguments)
        assert found is not None
        command, name = found, found.name or ""


def shown() -> list[str]:
    """The commands in code blocks and code spans, without prose."""
    blocks = [line.strip() for line in README.splitlines() if line.startswith("    ")]
    lines = [line.split("  #")[0] for line in blocks if "whorl " in line and "──" not in line]
    spans = re.findall(r"`(whorl [a-z][^`<]*)`", README)
    return sorted({re.sub(r"^.*?whorl ", "", line).strip() for line in [*lines, *spans]})


@pytest.mark.parametrize("line", shown())
def test_the_program_takes_every_command_of_the_readme(line: str) -> None:
    try:
        assert parsed(line)
    except Exception as error:  # a verb may be named without what it works on
        if "Missing parameter" not in str(error):
            raise


def test_the_readme_shows_the_ways_in() -> None:
    assert {"jobs ingest", "jobs summary", "report", "deploy"} <= {" ".join(line.split()[:2]) for line in shown()} | {
        line.split()[0] for line in shown()
    }


def test_a_wrong_option_in_the_readme_would_be_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed("jobs summary --no-such-option")


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_every_file_that_the_readme_names_is_there(name: str) -> None:
    assert (ROOT / name).exists()


def test_every_command_of_the_makefile_is_in_the_readme() -> None:
    targets = re.search(r"\.PHONY: (.*)", (ROOT / "Makefile").read_text())
    assert targets is not None
    assert [
        target for target in targets[1].split() if target not in ("help", "clean") and f"make {target}" not in README
    ] == []
