"""Every README: its commands are ones that the program takes, its knobs are settings, its files are there."""

import re
import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pydantic
import pytest
import typer

from flows.cli.app import build_app, hoisted
from tasks.settings import Settings

ROOT = Path(__file__).parents[1]
TOP = (ROOT / "README.md").read_text()
WHERE = (
    "*.md",
    "flows/README.md",
    "tasks/**/README.md",
    "deployments/*.md",
    "data/recorded/*/README.md",
    "tests/**/README.md",
)
READMES = sorted({path for where in WHERE for path in ROOT.glob(where)} - {ROOT / "CHANGELOG.md"})
WORDS = "jobs|workloads|nodes|whorl"
ENDINGS = "md|py|sql|yaml|toml|service"
FOLDERS = "tasks|flows|tests|data/recorded|deployments|conf"
MADE_HERE = ("conf/local",)  # by an operator; the rest of data/ is made at run time
TABLES = set(re.findall(r"^## (\S+)", (ROOT / "tasks/warehouse/DICTIONARY.md").read_text(), re.MULTILINE))
OTHERS = {"whorl.record": "metadata of a part", "whorl.jobs.alarm": "event", "whorl.service": "unit of systemd"}


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


def shown(text: str) -> list[str]:
    """The commands in code blocks and code spans, without prose, and without the variables before them."""
    blocks = [
        part for line in text.splitlines() if line.startswith("    ") for part in re.split(r"  # (?:or: )?", line)
    ]
    spans = re.findall(r"`([^`]*)`", " ".join(text.split("\n")))
    found = [re.match(r"\s*(?:[A-Z_]+=\S* +)*(?:\S*/)?whorl ([a-z-][^<;]*)", one) for one in [*blocks, *spans]]
    commands = {re.sub(r"PATH(…|\.\.\.)", "PATH", line[1]) for line in found if line and "──" not in line[0]}
    return sorted({" ".join(command.split()) for command in commands})


def every(find: Callable[[str], list[str]]) -> list[Any]:
    """What a function finds in each README, with the README's place as id."""
    return [
        pytest.param(path, one, id=f"{path.relative_to(ROOT)}: {one}")
        for path in READMES
        for one in find(path.read_text())
    ]


def files_of(text: str) -> list[str]:
    """Paths that begin at a folder of the project, without those that stand for several files."""
    found = re.findall(rf"(?<![\w/.])((?:{FOLDERS})/[\w./-]*[\w/])", text)
    return sorted({one for one in found if "NNNN" not in one and not one.startswith(MADE_HERE)})


def neighbours_of(text: str) -> list[str]:
    """Paths in code spans with an ending that is ours, wherever they begin."""
    found = re.findall(rf"`([\w./-]+\.(?:{ENDINGS}))`", text)
    return sorted({one for one in found if "NNNN" not in one and not one.startswith(MADE_HERE)})


def modules_of(text: str) -> list[str]:
    """Modules that are run by `python -m`."""
    return sorted(set(re.findall(r"python -m ((?:tasks|flows)[\w.]+)", text)))


def knobs_of(text: str) -> list[str]:
    """`word.knob.path`, alone in a code span: what is no table, no column of one, and no figure."""
    found = set(re.findall(rf"`((?:{WORDS})(?:\.[a-z0-9_]+)+)`", text)) - OTHERS.keys()
    figures = {one for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for one in re.findall(r"`(.*?)`", row)}
    return sorted(one for one in found - figures if ".".join(one.split(".")[:2]) not in TABLES)


def is_setting(path: str) -> bool:
    """Whether the settings have such a knob, or a group of them."""
    models: list[Any] = [Settings]
    for part in path.split("."):
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        if not fields:
            return False
        kinds = [kind for field in fields for kind in (field.annotation, *get_args(field.annotation))]
        models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)]
    return True


@pytest.mark.parametrize(("readme", "line"), every(shown))
def test_the_program_takes_every_command_of_a_readme(readme: Path, line: str) -> None:
    try:
        assert parsed(line)
    except Exception as error:  # a verb may be named without what it works on
        if "Missing parameter" not in str(error):
            raise


def test_the_readme_shows_the_ways_in() -> None:
    assert {"jobs ingest", "jobs summary", "report jobs", "deploy"} <= {
        " ".join(line.split()[:2]) for line in shown(TOP)
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [("jobs summary --no-such-option", "No such option"), ("jobs sumary", "No such command"), ("job", "No such")],
)
def test_a_wrong_verb_or_option_in_a_readme_would_be_found(line: str, words: str) -> None:
    with pytest.raises(Exception, match=words):
        parsed(line)


@pytest.mark.parametrize(("readme", "name"), every(files_of))
def test_every_file_that_a_readme_names_is_there(readme: Path, name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize(("readme", "name"), every(neighbours_of))
def test_every_file_that_a_readme_names_from_where_it_stands_is_there(readme: Path, name: str) -> None:
    assert any((ROOT / folder / name).exists() for folder in readme.relative_to(ROOT).parents)


@pytest.mark.parametrize(("readme", "module"), every(modules_of))
def test_every_module_that_a_readme_runs_is_there(readme: Path, module: str) -> None:
    assert (ROOT / f"{module.replace('.', '/')}.py").exists()


@pytest.mark.parametrize(("readme", "knob"), every(knobs_of))
def test_every_knob_that_a_readme_names_is_a_setting(readme: Path, knob: str) -> None:
    assert is_setting(knob)


def test_a_knob_that_is_none_would_be_found() -> None:
    assert is_setting("jobs.summary.min_support") and is_setting("nodes.record.short")
    assert not is_setting("jobs.summary.least_support")


def test_every_command_of_the_makefile_is_in_the_readme() -> None:
    targets = re.search(r"\.PHONY: (.*)", (ROOT / "Makefile").read_text())
    assert targets is not None
    assert [
        target for target in targets[1].split() if target not in ("help", "clean") and f"make {target}" not in TOP
    ] == []
