"""Lines of docstrings as options: what they set exists, what is given arrives, what does not fit is told at once."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from flows.cli.app import GROUPS, VERBS
from flows.cli.invocation import Invocation
from flows.cli.options import command_of, described
from tasks.settings import Settings, leaves


def verbs() -> Iterator[tuple[str, Callable[..., None]]]:
    yield from (("", verb) for verb in VERBS)
    for word, (_, modules, names) in GROUPS.items():
        yield from ((word, next(getattr(one, name) for one in modules if hasattr(one, name))) for name in names.split())


@pytest.mark.parametrize(("word", "verb"), list(verbs()), ids=lambda one: getattr(one, "__name__", one))
def test_every_option_that_sets_a_setting_names_one_that_there_is(word: str, verb: Callable[..., None]) -> None:
    settings = leaves(Settings().model_dump())
    named = [line.setting for line in described(verb)[1] if line.setting]
    paths = [f"{word}{path}" if path.startswith(".") else path for path in named]
    assert [path for path in paths if path not in settings] == []


@pytest.fixture
def ask() -> Callable[..., Any]:
    """A function that runs a verb with arguments; gives exit code, output, settings given, and what the verb got."""

    def ask(verb: Callable[..., None], *arguments: str, word: str = "jobs") -> tuple[int, str, Any, Any]:
        got: list[Any] = []

        def noted(call: Invocation, **values: Any) -> None:
            got.append((call, values))

        noted.__doc__ = verb.__doc__
        noted.__signature__ = inspect.signature(verb)  # type: ignore[attr-defined]
        app = typer.Typer(rich_markup_mode=None)

        @app.callback()
        def root(context: typer.Context) -> None:
            context.obj = Invocation()

        app.command("verb")(command_of(noted, word))
        ended = CliRunner().invoke(app, ["verb", *arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})
        call, values = got[0] if got else (None, None)
        return ended.exit_code, ended.output, call, values

    return ask


def reading(call: Invocation, paths: list[str], top: int = 3, kind: Literal["a", "b"] = "a") -> None:
    """Read.

    PATH: Files
    --top (1..9): How many
    --kind: Of which kind
    --time-zone (str .read.time_zone): Time zone
    --manifest FILE (path .read.manifest): A list
    --map, --map-value, --group-by, --max-refused-share, --pseudonymise"""


def test_arguments_arrive_with_their_types_and_paths_are_named_as_from_anywhere(ask: Any) -> None:
    code, _, call, values = ask(reading, "a.csv", "s3://b/c", "--top", "5", "--json")
    assert code == 0
    assert values == {"paths": [str(Path.cwd() / "a.csv"), "s3://b/c"], "top": 5, "kind": "a"}
    assert call.as_json and not call.flags  # what was not given sets nothing


def test_an_option_that_sets_a_setting_is_not_seen_by_the_verb(ask: Any) -> None:
    flags = ["--time-zone", "Europe/Berlin", "--manifest", "m.csv", "--map", "run_id=id", "--map", "name=a=b"]
    flags += ["--map-value", "status:x=y=completed", "--group-by", "user, cpus", "--pseudonymise"]
    _, _, call, values = ask(reading, "a", *flags)
    assert set(values) == {"paths", "top", "kind"}
    read = call.flags["jobs"]["read"]
    assert (read["time_zone"], read["manifest"]) == ("Europe/Berlin", str(Path.cwd() / "m.csv"))
    assert read["columns"] == {"run_id": "id", "name": "a=b"}
    assert read["statuses"] == {"x=y": "completed"}
    assert read["pseudonymise"] is True
    assert call.flags["jobs"]["group"] == {"by": ["user", "cpus"]}
    _, _, call, _ = ask(reading, "a", "--max-refused-share", "0", "--group-by", "")  # nothing is something
    assert call.flags["jobs"] == {"read": {"limits": {"max_refused_share": 0.0}}, "group": {"by": []}}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--top", "0"], "greater than or equal to 1"),
        (["--kind", "c"], "'c' is not one of"),
        (["--map", "=id"], "'=id' is not OURS=THEIRS, such as run_id=job"),
        (["--map-value", "queue:a=b"], "'queue:a=b': statuses alone can be mapped"),
    ],
)
def test_what_an_option_does_not_take_is_wrong_usage(ask: Any, flags: list[str], said: str) -> None:
    code, told, call, _ = ask(reading, "a", *flags)
    assert (code, call) == (2, None)
    assert said in " ".join(told.split())


def test_a_verb_whose_lines_and_arguments_differ_is_a_fault_of_the_code() -> None:
    def short(call: Invocation, top: int, bottom: int) -> None:
        """Show.

        --top: How many"""

    def long(call: Invocation, top: int) -> None:
        """Show.

        --top: How many
        --bottom: How many"""

    def odd(call: Invocation, top: int) -> None:
        """Show.

        --top How many: or so
        and something"""

    for verb in (short, long):
        with pytest.raises(TypeError, match="a line for each of its arguments"):
            command_of(verb)
    with pytest.raises((TypeError, KeyError)):
        command_of(odd)
