"""Running the command line in this process, as a program would see it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from flows.cli import app, run
from flows.cli.invocation import Invocation


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Whorl:
    """Runs `whorl` with some arguments in the home of a test."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: Any) -> Ended:
        self.capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        written = self.capsys.readouterr()
        return Ended(code, written.out, written.err)

    def done(self, *arguments: Any) -> Ended:
        """The same; fails unless the command has done what it should."""
        ended = self(*arguments)
        assert ended.code == 0, ended.err
        return ended


@pytest.fixture(scope="session", autouse=True)
def _commands_are_put_together_once() -> Iterator[None]:
    """The tree of commands is the same for each call, of which a test makes several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "build_app", cache(app.build_app))
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of this test: WHORL_HOME names it; it need not exist. Fixture job_log fills the same one."""
    monkeypatch.setenv("WHORL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WHORL_DATASETS", raising=False)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path / "home"


@pytest.fixture
def whorl(home: Path, capsys: pytest.CaptureFixture[str]) -> Whorl:
    return Whorl(capsys)


@pytest.fixture
def flow_finds(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[Any]]:
    """A function that says what flows find from now on: a result, an error, or what a function makes of the parameters.

    It gives the list of the parameters that they are asked with. No flow runs, and Prefect is not prepared."""
    monkeypatch.setattr(Invocation, "prepare_flows", lambda self: None)

    def find(found: Any) -> list[Any]:
        asked: list[Any] = []

        def run(_: Any, params: Any) -> Any:
            asked.append(params)
            if isinstance(found, Exception):
                raise found
            return found(params) if callable(found) else found

        monkeypatch.setattr("flows.engine.forms.call", run)
        return asked

    return find


@pytest.fixture
def varied_log(job_log: Callable[..., Any]) -> Any:
    """A source `log` with a steady job of 30 runs, a varied one of 10, and one that ran once."""
    steady = [{"group_key": "steady_load#aaaaaaaa", "runtime_s": 10.0} for _ in range(30)]
    varied = [{"group_key": "varied_export#bbbbbbbb", "runtime_s": 10.0 + 200.0 * (i % 2)} for i in range(10)]
    return job_log([*steady, *varied, {"group_key": "once#cccccccc", "runtime_s": 5.0}])


@pytest.fixture
def flows_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of Prefect stays that of the test session."""
    monkeypatch.setattr(Invocation, "prepare_flows", lambda self: None)
    monkeypatch.setattr(Invocation, "prepare_client", lambda self, api_url: None)
