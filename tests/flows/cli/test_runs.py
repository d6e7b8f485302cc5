"""`whorl runs` and `whorl models`: what was done, and which model is in use."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, promote, register
from tasks.warehouse.runs import RunRecord, record_run
from tests.flows.cli.conftest import Whorl

NOON = datetime(2026, 1, 1, 12)


def run_of(run_id: str, hour: int, **figures: float) -> RunRecord:
    started_at = NOON + timedelta(hours=hour)
    return RunRecord(
        run_id=run_id, flow="jobs-ingest", word="jobs", source="log", status="completed", started_at=started_at,
        ended_at=started_at + timedelta(seconds=200), figures=figures,
        parameters={"source": "log", "paths": ["/logs/a.csv"], "read": {"time_zone": ""}},
    )  # fmt: skip


@pytest.fixture
def runs(job_log: Callable[..., Warehouse]) -> None:
    """Two runs of a flow, the later with twice the rows."""
    warehouse = job_log([{"runtime_s": 1.0}])
    record_run(warehouse, run_of("aaaa1111", 0, n_rows=1000.0))
    record_run(warehouse, run_of("bbbb2222", 1, n_rows=2000.0))


def test_runs_are_listed_the_latest_first(
    whorl: Whorl, job_log: Callable[..., Warehouse], request: pytest.FixtureRequest
) -> None:
    job_log([{"runtime_s": 1.0}])
    ended = whorl("runs", "list")
    assert (ended.code, ended.out, ended.err) == (0, "", "no flow has run yet in this home\n")
    request.getfixturevalue("runs")

    def listed(*flags: str | int) -> list[str]:
        return [run["run_id"] for run in json.loads(whorl("runs", "list", "--json", *flags).out)["runs"]]

    assert (listed(), listed("--top", 1)) == (["bbbb2222", "aaaa1111"], ["bbbb2222"])
    shown = whorl("runs", "list").out.splitlines()[1]
    assert "2026-01-01 13:00:00" in shown and "3.3 min" in shown


def test_a_run_is_shown_by_the_beginning_of_its_id(whorl: Whorl, runs: None) -> None:
    shown = whorl("runs", "show", "bb").out
    facts = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert facts["run_id"] == "bbbb2222"
    assert facts["figures.n_rows"] == "2,000"
    assert facts["parameters.read.time_zone"] == "''"
    assert facts["took"] == "3.3 min"
    assert json.loads(whorl("runs", "show", "bb", "--json").out)["figures"] == {"n_rows": 2000.0}


def test_no_id_at_all_asks_for_one(whorl: Whorl, runs: None) -> None:
    for wanted in ("", " "):
        ended = whorl("runs", "show", wanted)
        expected = (
            f"whorl: run {wanted!r}: expected its id or the beginning of it; 'whorl runs list' shows the latest\n"
        )
        assert (ended.code, ended.err) == (2, expected)
    assert whorl("runs", "compare", "aa", "").code == 2


def test_a_beginning_that_fits_many_runs_counts_all_of_them(whorl: Whorl, job_log: Callable[..., Warehouse]) -> None:
    warehouse = job_log([{"runtime_s": 1.0}])
    for i in range(8):
        record_run(warehouse, run_of(f"ab{i}", i))
    ended = whorl("runs", "show", "ab")
    assert ended.code == 4
    assert ended.err == "whorl: run 'ab': 8 runs begin so: ab7, ab6, ab5, ab4, ab3 and 3 more; give more of the id\n"


def test_runs_are_compared_by_what_differs(whorl: Whorl, runs: None) -> None:
    told = json.loads(whorl("runs", "compare", "aa", "bb", "--json").out)
    rows = {row["key"]: row for row in told["differences"]}
    assert len(told["runs"]) == 2
    assert rows["figures.n_rows"] == {
        "key": "figures.n_rows", "values": [1000.0, 2000.0], "best": None,
    }  # fmt: skip
    assert "source" not in rows and "run_id" not in rows
    shown = whorl("runs", "compare", "aa", "bb")
    assert ["figures.n_rows", "1,000", "2,000"] in [line.split() for line in shown.out.splitlines()]
    assert whorl("runs", "compare", "aa", "aa").err == "the runs differ in nothing\n"
    assert whorl("runs", "compare", "aa").code == 2


def test_a_comparison_of_long_values_fits_a_hundred_columns(
    whorl: Whorl, job_log: Callable[..., Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = job_log([{"runtime_s": 1.0}])
    ids = [f"0b1c0e36-9d0c-4c3c-8b7e-00000000000{i}" for i in range(3)]
    for hour, run_id in enumerate(ids):
        made = run_of(run_id, hour, n_rows=1e6 * (hour + 1))
        figures = {**made.figures, "crps": 3.0 - hour, "a_long_name_of_a_figure_" * 2: hour}
        record_run(warehouse, made.model_copy(update={"figures": figures}))
    monkeypatch.setenv("COLUMNS", "100")
    ended = whorl("runs", "compare", *ids)
    lines = ended.out.splitlines()
    assert max(len(line) for line in [*lines, *ended.err.splitlines()]) <= 100
    assert [line.split() for line in lines[:3]] == [["A", ids[0]], ["B", ids[1]], ["C", ids[2]]]
    assert ["figures.n_rows", "1,000,000", "2,000,000", "3,000,000"] in [line.split() for line in lines]
    assert ["figures.crps", "3", "2", "1", "*"] in [line.split() for line in lines]


@pytest.fixture
def models(job_log: Callable[..., Warehouse]) -> Warehouse:
    """Two models of one kind; the first is in use."""
    warehouse = job_log([{"runtime_s": 1.0}])
    for model_id, crps in (("shapes-1", 0.5), ("shapes-2", 0.4)):
        told = {"word": "jobs", "source": "log", "kind": "shapes", "trained_at": NOON, "run_id": "aaaa1111", "seed": 1}
        told |= {"data_version": "0123", "code_version": "0.1.0", "parameters": {}, "metrics": {"crps": crps}}
        register(warehouse, ModelCard(model_id=model_id, **told), lambda folder: None)
    promote(warehouse, "jobs", "shapes-1", "first")
    return warehouse


def in_use(whorl: Whorl) -> list[str]:
    listed = json.loads(whorl("models", "list", "--json").out)["models"]
    return [model["model_id"] for model in listed if model["is_champion"]]


def test_a_model_is_promoted_and_rolled_back(whorl: Whorl, models: Warehouse) -> None:
    first, second = (line.split() for line in whorl("models", "list").out.splitlines()[1:])
    assert first[:5] == ["shapes-1", "jobs", "log", "shapes", "yes"]
    assert "crps 0.4" in " ".join(second) and "yes" not in second
    ended = whorl("models", "promote", "shapes-2", "--reason", "better on D3")
    assert ended.out == "shapes of source log is now shapes-2 (better on D3)\n"
    assert in_use(whorl) == ["shapes-2"]
    whorl.done("models", "rollback", "jobs", "shapes", "--source", "log")
    assert in_use(whorl) == ["shapes-1"]


def test_an_unknown_model_names_those_that_there_are(whorl: Whorl, models: Warehouse) -> None:
    ended = whorl("models", "promote", "shapes-9")
    assert ended.code == 4
    assert ended.err.endswith("there are: shapes-1, shapes-2\n")


def test_no_model_at_all_is_a_note(whorl: Whorl, home: Path) -> None:
    ended = whorl("models", "list")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"{home}/models: no model has been trained yet\n"
