"""What the shell offers after TAB."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Whorl = Callable[..., Any]


@pytest.fixture
def offered(whorl: Whorl, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """What is offered for a half-written line."""

    def offer(line: str) -> list[str]:
        monkeypatch.setenv("_WHORL_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        ended = whorl()
        assert (ended.code, ended.err) == (0, "")
        return str(ended.out).split()

    return offer


def test_verbs_and_values_are_offered(offered: Callable[[str], list[str]]) -> None:
    assert offered("whorl jo") == ["jobs"]
    assert offered("whorl jobs summary --sort c") == ["cov"]
    assert offered("whorl datasets fetch s") == ["swf", "slurm", "sparecores", "scout"]
    assert offered("whorl config j") == ["jobs"]


def test_names_of_the_warehouse_are_offered(offered: Callable[[str], list[str]], whorl: Whorl, varied_log: Any) -> None:
    assert whorl("jobs", "summary").code == 0
    assert offered("whorl jobs summary --source ") == ["log"]
    assert offered("whorl jobs summary --job st") == ["steady_load#aaaaaaaa"]
    assert offered("whorl jobs summary --source other --job st") == []


@pytest.mark.parametrize("line", ["jobs summary --source ", "runs show ", "models promote "])
def test_without_a_warehouse_nothing_is_offered_and_nothing_made(
    offered: Callable[[str], list[str]], home: Path, line: str
) -> None:
    assert offered(f"whorl {line}") == []
    assert not home.exists()


def test_a_wrong_setting_does_not_disturb_the_line(
    offered: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHORL_NONSENSE", "1")
    assert offered("whorl jobs summary --source ") == []
