"""Progress: a bar on a terminal, a line for each step elsewhere, nothing for a quiet user."""

import subprocess
import sys

import pytest

from flows.cli.invocation import SAY_OTHERWISE, Invocation, note_understood, progress_bar, refuse_unreadable, run_flow
from tasks.errors import BadInput, report_progress


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


def test_without_a_terminal_there_is_one_line_for_each_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 7.0)
    with progress_bar(Invocation(), first="getting ready"):
        for name in ("a.csv", "b\x1b.csv"):
            report_progress("land log", 0)
            report_progress(f"reading {name}", 1_000)
        report_progress("judging", 0, 12)
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == "   0 s  land log\n   0 s  judging\n"  # how far it is: seldom


def test_a_step_that_lasts_says_now_and_then_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.0, 20.0, 31.0, 40.0, 62.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with progress_bar(Invocation()):
        for done in range(5):
            report_progress("writing", done, 10)
    assert capsys.readouterr().err == "   1 s  writing\n  31 s  writing 2 of 10\n  62 s  writing 4 of 10\n"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_quiet_user_sees_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    work(Invocation(is_quiet=True))
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", "")


def test_what_a_flow_prints_does_not_reach_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Invocation, "prepare_flows", lambda self: None)
    monkeypatch.setattr("flows.engine.forms.run_flow", lambda *_, **__: print("a chatty library"))
    run_flow(Invocation(), "jobs-train")
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", "   0 s  starting Prefect\na chatty library\n")


def test_what_columns_were_taken_for_is_told_with_how_to_say_otherwise_and_sections_need_none() -> None:
    notes: list[str] = []
    sections_alone, words = ["with the sections of cpu and disk"], ["start not told: 1 log of fio", "read the words OK"]
    for lines in ([], sections_alone, ["start not told: 1 log of fio"], words):
        note_understood(notes.append, "/logs/a.csv", lines)
    sections, starts, columns = notes
    assert SAY_OTHERWISE not in starts
    assert sections.splitlines() == ["a.csv:", "  with the sections of cpu and disk"]
    assert columns.splitlines()[-1] == f"  {SAY_OTHERWISE}"


def test_what_was_understood_of_the_first_file_that_can_be_read_is_told_and_given_back() -> None:
    def begin(path: str) -> list[str]:
        if path != "b.csv":
            raise BadInput(path, "is empty", "rows")
        return ["not read: 'mood'"]

    notes: list[str] = []
    assert refuse_unreadable(["a.csv", "b.csv", "c.csv"], begin, notes.append) == ["not read: 'mood'"]
    assert len(notes) == 1 and notes[0].startswith("b.csv:")
    assert refuse_unreadable(["http://host/api", "b.csv"], begin, notes.append) == ()
    with pytest.raises(BadInput, match=r"c\.csv: is empty"):
        refuse_unreadable(["a.csv", "c.csv"], begin, notes.append)


def test_a_note_stands_behind_what_was_printed_before_it_also_where_both_go_to_one_file() -> None:
    code = "from flows.cli.invocation import Invocation; print('answer'); Invocation().note('next')"
    told = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert told.stdout.splitlines() == ["answer", "next"]
