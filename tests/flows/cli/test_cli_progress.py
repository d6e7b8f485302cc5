"""Progress is for a person at a terminal, and for nobody else."""

import sys

import pytest

from flows.invocation import Invocation
from flows.progress_bar import progress_bar
from flows.running import flow_running
from tasks.progress import report_progress


def work(invocation: Invocation) -> None:
    with progress_bar(invocation, first="getting ready"):
        report_progress("reading [b]a.csv[/b]", 1_000)
        report_progress("writing", 5, 10)


def test_a_terminal_sees_what_is_done_and_how_much(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    work(Invocation())
    written = capsys.readouterr()
    assert written.out == ""
    assert "5 of 10" in written.err


@pytest.mark.parametrize("invocation", [Invocation(), Invocation(is_quiet=True)])
def test_a_program_and_a_quiet_user_see_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, invocation: Invocation
) -> None:
    if invocation.is_quiet:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    work(invocation)
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", "")


def test_what_a_flow_prints_does_not_reach_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Invocation, "prepare_flows", lambda self: None)
    with flow_running(Invocation()):
        print("a chatty library")
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", "a chatty library\n")
