"""Names of sources on the command line: checked the same way by every verb, and safe to paste from a note."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Whorl = Callable[..., Any]
WRONG = ["", " log", "log\n", "a\tb", "x" * 101]
EXPECTED = "not a name that everyone can type; expected 1 to 100 printable characters without blanks at the ends"


@pytest.mark.parametrize("source", WRONG, ids=["empty", "blank", "line feed", "tab", "too long"])
@pytest.mark.parametrize(
    "verb",
    [
        ("jobs", "ingest", "."),
        ("jobs", "ingest", ".", "--dry-run"),
        ("jobs", "summary"),
        ("jobs", "watch"),
        ("report", "jobs"),
        ("models", "rollback", "jobs", "shapes"),
    ],
    ids=" ".join,
)
def test_a_source_that_cannot_be_one_is_one_clear_line_whatever_the_verb(
    whorl: Whorl, verb: tuple[str, ...], source: str
) -> None:
    ended = whorl(*verb, "--source", source)
    assert ended.code == 2
    assert ended.err == f"whorl: source {source!r}: {EXPECTED}; choose another\n"
    assert ended.out == ""


def test_the_command_that_makes_a_summary_can_be_pasted_for_any_source(job_log: Callable[..., Any]) -> None:
    from tasks.errors import NotFound
    from tasks.jobs.summary import read_summary

    warehouse = job_log([{"runtime_s": 1.0}], source="my log; reboot")
    with pytest.raises(NotFound) as refusal:
        read_summary(warehouse, "my log; reboot")
    assert str(refusal.value).endswith("make one with whorl jobs summary --source 'my log; reboot'")


def test_the_next_command_after_an_ingest_can_be_pasted(
    whorl: Whorl, job_log: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.cli import jobs
    from tasks.jobs.params import SummaryParams
    from tasks.jobs.summary import summarise

    source = "it's mine"
    warehouse = job_log([{"runtime_s": 1.0}], source=source)
    summarise(warehouse, source, SummaryParams())
    ended = {"batches": [], "data_version": "0", "report": "r.html"}
    monkeypatch.setattr(jobs, "_ingested", lambda *_: ended)
    (tmp_path / "log.csv").write_text("run_id,name,started_at,runtime_s\n")
    noted = whorl("jobs", "ingest", tmp_path / "log.csv", "--source", source).err
    assert noted.startswith("next: ")
    assert shlex.split(noted.removeprefix("next: ")) == ["whorl", "jobs", "summary", "--source", source]


@pytest.mark.parametrize(
    ("verb", "word"),
    [
        (("nodes", "rank"), "nodes"),
        (("nodes", "summary"), "nodes"),
        (("workloads", "train"), "workloads"),
        (("report", "workloads"), "workloads"),
        (("jobs", "summary"), "jobs"),
    ],
    ids=str,
)
def test_an_empty_home_is_filled_by_the_ingest_of_the_same_word(whorl: Whorl, verb: tuple[str, ...], word: str) -> None:
    ended = whorl(*verb)
    assert (ended.code, ended.out) == (4, "")
    assert f"for instance with 'whorl {word} ingest FILE', or name another home" in ended.err
