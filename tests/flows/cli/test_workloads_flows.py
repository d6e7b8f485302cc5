"""Verbs of `whorl workloads` that run a flow: what they ask of it, and what they show of its result."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli.invocation import Invocation
from flows.cli.workloads import one_workload_source
from tasks.errors import BadInput
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse

Whorl = Callable[..., Any]


@pytest.fixture(autouse=True)
def _flows_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of Prefect stays that of the test session."""
    monkeypatch.setattr(Invocation, "prepare_flows", lambda self: None)


@pytest.mark.usefixtures("prefect_server")
def test_an_ingest_shows_files_and_how_many_runs_have_a_label(
    whorl: Whorl, drawn_telemetry: Callable[..., Path]
) -> None:
    file = drawn_telemetry("shown", n_runs=2)
    ended = whorl("workloads", "ingest", file, "--source", "mine")
    assert ended.code == 0, ended.err
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["shown.parquet", "wide", "240", "240", "0"] in lines
    assert ended.out.endswith("8 runs in source mine, 8 with a label\n")
    assert "next: whorl workloads train --source mine" in ended.err
    told = json.loads(whorl("workloads", "ingest", file, "--source", "mine", "--json").out)
    assert (told["n_runs"], told["n_labelled"], told["refused"]) == (8, 8, [])


@pytest.mark.usefixtures("prefect_server")
def test_what_is_suggested_after_an_ingest_without_labels_works(
    whorl: Whorl, identifying_log: Warehouse, drawn_telemetry: Callable[..., Path]
) -> None:
    file = drawn_telemetry("plain", workloads="a", n_runs=1, seed=8, unlabelled=True, prefix="p-")
    ended = whorl("workloads", "ingest", file, "--source", "mine")
    assert ended.out.endswith("1 run in source mine, 0 with a label\n")
    suggested = ended.err.splitlines()[-1].removeprefix("next: ").replace("FILE", str(file)).split(" or ")
    assert [one.split()[1:3] for one in suggested] == [["workloads", "fingerprint"], ["workloads", "identify"]]
    for command in suggested:
        went_on = whorl(*command.split()[1:])
        assert went_on.code == 0, went_on.err
        assert "next:" not in went_on.err  # source mine has no model to identify a run by
    again = whorl("workloads", "ingest", file, "--source", "log")
    assert again.err.endswith("next: whorl workloads train --source log\n")  # which has labelled runs


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")
def test_a_source_is_fingerprinted_trained_and_watched_from_the_command_line(
    whorl: Whorl, workloads_log: Warehouse
) -> None:
    found = json.loads(whorl("workloads", "fingerprint", "--json").out)
    assert (found["source"], found["n_new"]) == ("log", 24)
    assert "24" in whorl("workloads", "fingerprint").out
    trained = whorl("workloads", "train", "--leave-out", "a-00", "--seed", 3)
    assert trained.code == 0, trained.err
    facts = dict(line.split("  ", 1) for line in trained.out.splitlines() if "  " in line)
    assert facts["in use"].strip() == "this model"
    assert facts["held out"].strip() == "8 runs (round 3), which the figures below are of"
    watched = json.loads(whorl("workloads", "watch", "--newest", 2, "--expect", "nothing", "--json").out)
    assert len(watched["run_ids"]) == 2
    assert {alarm["kind"] for alarm in watched["alarms"]} <= {"unexpected-workload", "unknown-workload"}
    again = whorl("workloads", "watch", "--newest", 2, "--expect", "nothing")
    assert again.err.endswith("looked at 2 runs: no new alarm\n")


def test_flags_of_an_ingest_reach_the_flow(whorl: Whorl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(params: Any) -> None:
        asked.append(params)
        raise BadInput("a.csv", "nothing in it", "telemetry")

    monkeypatch.setattr("flows.workloads.ingest_workloads", refuse)
    (tmp_path / "a.csv").write_text("t,a,b\n" + "".join(f"{i},2,{i % 3}\n" for i in range(60)))
    (tmp_path / "m.csv").write_text("path,workload\na.csv,redis\n")
    flags = ["--label-from", "parent", "--map", "at_s=t", "--time-zone", "Europe/Berlin"]
    flags += ["--manifest", str(tmp_path / "m.csv")]
    ended = whorl("workloads", "ingest", tmp_path / "a.csv", "-s", "mine", "--reader", "wide", *flags)
    assert (ended.code, ended.err) == (3, "   0 s  starting Prefect\nwhorl: a.csv: nothing in it; expected telemetry\n")
    [params] = asked
    assert (params.telemetry, params.source, params.reader) == ([str(tmp_path / "a.csv")], "mine", "wide")
    assert (params.read.label_from, params.read.columns) == ("parent", {"at_s": "t"})
    assert (params.read.time_zone, params.read.manifest) == ("Europe/Berlin", str(tmp_path / "m.csv"))


def test_an_ingest_of_nothing_is_wrong_usage(whorl: Whorl) -> None:
    ended = whorl("workloads", "ingest")
    assert ended.code == 2
    assert "--manifest" in ended.err


def test_a_mistyped_path_is_told_before_prefect_is_started(whorl: Whorl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.cli.workloads.flow_running", lambda _: pytest.fail("started"))
    ended = whorl("workloads", "ingest", "/nowhere.csv")
    assert (ended.code, "/nowhere.csv: no such file or folder" in ended.err) == (3, True)


def test_flags_of_a_watch_reach_the_flow(
    whorl: Whorl, identifying_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def watch(params: Any) -> dict[str, Any]:
        asked.append(params.watch)
        return {"run_ids": ["live"], "model_id": "m", "alarms": [], "n_alarms": 0, "report": ""}

    monkeypatch.setattr("flows.workloads.watch_workloads", watch)
    ended = whorl("workloads", "watch", "--expect", "a", "--expect", "b", "--seconds", 10, "--subject", 77)
    assert ended.err.endswith("looked at 1 run: no new alarm\n")
    [live] = asked
    assert (live.look_at, live.expected, live.seconds, live.subject) == ("live", ["a", "b"], 10, "77")
    whorl("workloads", "watch", "--newest", 4)
    assert (asked[1].look_at, asked[1].newest, asked[1].expected) == ("newest", 4, [])


def test_sources_of_job_logs_do_not_stand_in_the_way(workloads_log: Warehouse) -> None:
    with writing(workloads_log) as connection, transaction(connection):
        connection.execute("CREATE TEMP TABLE one AS SELECT * FROM ops.files")
        connection.execute(
            "INSERT INTO ops.files SELECT * REPLACE ('jobs' AS word, 'nightly' AS source, 'other' AS batch_id) FROM one"
        )
    assert one_workload_source(workloads_log, None) == "log"
