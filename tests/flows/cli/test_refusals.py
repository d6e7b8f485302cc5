"""Wrong input is refused in one line before Prefect is started, which takes seconds, by every verb that runs a flow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli.invocation import Invocation
from tasks.warehouse.place import Warehouse

Whorl = Callable[..., Any]
WITHOUT_ROWS = [
    ("jobs", "watch"),
    ("jobs", "train"),
    ("jobs", "characterise"),
    ("workloads", "train"),
    ("workloads", "fingerprint"),
    ("workloads", "watch"),
    ("nodes", "preprocess"),
    ("nodes", "train"),
    ("nodes", "tune"),
    ("nodes", "fingerprint"),
    ("nodes", "watch"),
]


@pytest.fixture(autouse=True)
def _prefect_is_never_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Invocation, "prepare_flows", lambda self: pytest.fail("Prefect was started"))


@pytest.mark.parametrize("word", ["jobs", "workloads", "nodes"])
def test_files_of_which_none_can_be_read_are_each_told(whorl: Whorl, home: Path, tmp_path: Path, word: str) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("colour,shape\nred,round\n")
    ended = whorl(word, "ingest", tmp_path / "a.csv", tmp_path / "b.csv")
    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 2)
    for line, name in zip(ended.err.splitlines(), ("a.csv", "b.csv"), strict=True):
        assert line.startswith(f"whorl: {tmp_path / name}: ")
    assert not home.exists()


@pytest.mark.parametrize("word", ["jobs", "workloads", "nodes"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("/nowhere.csv",), 3), (("a.csv", "--map", "oops"), 2), (("a.csv", "--reader", "theirs"), 2)],
)
def test_a_path_a_map_and_a_reader_that_are_none_are_refused(
    whorl: Whorl, home: Path, word: str, arguments: tuple[str, ...], code: int
) -> None:
    assert whorl(word, "ingest", *arguments).code == code
    assert not home.exists()


@pytest.mark.parametrize("verb", WITHOUT_ROWS, ids=" ".join)
def test_an_empty_home_and_an_unknown_source_are_refused(
    whorl: Whorl, job_log: Callable[..., Warehouse], verb: tuple[str, str]
) -> None:
    empty = whorl(*verb)
    assert (empty.code, empty.out, empty.err.count("\n")) == (4, "", 1)
    job_log([{"group_key": "once#cccccccc", "runtime_s": 5.0}])
    unknown = whorl(*verb, "--source", "nowhere")
    assert (unknown.code, unknown.out, unknown.err.count("\n")) == (4, "", 1)
    assert "source 'nowhere' has no" in unknown.err


@pytest.mark.parametrize(
    "arguments",
    [("jobs", "--isolation", "cgroups"), ("workloads", "-w", "redis"), ("nodes", "-b", "cpu-sysbench")],
    ids=lambda arguments: arguments[0],
)
def test_a_recording_without_its_tools_says_what_to_install(
    whorl: Whorl, home: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    from tasks import machine

    monkeypatch.setattr("tasks.jobs.record.cluster.read_cgroups", lambda: machine.Cgroups("none", [], []))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(machine, "SYSTEM_FOLDERS", ())
    monkeypatch.setattr(machine, "POSTGRES_FOLDERS", "/nowhere")
    ended = whorl(arguments[0], "record", *arguments[1:])
    assert (ended.code, ended.out, ended.err.count("\n")) == (7, "", 1)
    assert not home.exists()
