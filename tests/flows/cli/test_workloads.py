"""`whorl workloads`."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.cli.invocation import source_with_rows
from tasks.quantities import share
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.workloads.intake import fetch_runs
from tasks.workloads.telemetry import Conditions
from tests.flows.cli.conftest import Whorl

pytestmark = pytest.mark.usefixtures("flows_as_they_are")


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Two columns: one jumps at row 40, both are missing in row 10, and line 21 is empty."""
    rng = np.random.default_rng(1)
    jumps, noise = rng.normal(0, 1, 80) + 20 * (np.arange(80) >= 40), rng.normal(5, 1, 80)
    lines = ["jumps,noise", *(f"{a},{b}" for a, b in zip(jumps, noise, strict=True))]
    lines[11], lines[20] = ",", ""
    file = tmp_path / "series.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_one_json_value_holds_rows_and_probabilities(whorl: Whorl, series: Path) -> None:
    ended = whorl.done("workloads", "changepoints", series, "--json")
    assert ended.err == ""
    found = json.loads(ended.out)
    assert set(found) == {"changepoints", "probabilities"}
    assert found["changepoints"] == [40]
    assert 0.5 < found["probabilities"][0] <= 1
    found = json.loads(whorl("workloads", "changepoints", series, "--method", "pelt", "--json").out)
    assert 40 in found["changepoints"] and set(found["probabilities"]) == {None}


def test_each_column_can_be_asked_for_alone(whorl: Whorl, series: Path) -> None:
    found = json.loads(whorl("workloads", "changepoints", series, "--each", "--json").out)["counters"]
    assert (found["jumps"]["changepoints"], found["noise"]["changepoints"]) == ([40], [])
    lines = whorl("workloads", "changepoints", series, "--each").out.splitlines()
    assert lines[0].split() == ["column", "row", "probability", "before", "after"]
    assert [line.split()[:2] for line in lines[1:]] == [["jumps", "40"]]


def test_a_person_sees_a_table_or_a_line_that_says_there_is_nothing(whorl: Whorl, tmp_path: Path, series: Path) -> None:
    title, row = whorl("workloads", "changepoints", series).out.splitlines()
    assert title.split() == ["row", "probability", "moved", "most"]
    assert row.split()[0] == "40" and re.search(r"%  jumps 0\.0\d* → 19\.9$", row)
    flat = tmp_path / "flat.csv"
    flat.write_text("a\n" + "1\n" * 30)
    ended = whorl("workloads", "changepoints", flat)
    assert (ended.code, ended.out, ended.err) == (0, "", "no change in 30 samples\n")
    assert json.loads(whorl("workloads", "changepoints", flat, "--json").out) == {
        "changepoints": [],
        "probabilities": [],
    }


def test_values_are_shown_in_the_unit_of_their_cells(whorl: Whorl, tmp_path: Path) -> None:
    file = tmp_path / "panel.csv"
    noise = np.random.default_rng(3).normal(size=60)
    latencies = (f"{10 + 40 * (at >= 30) + noise[at]:.3f} ms,{at % 3}" for at in range(60))
    file.write_text("\n".join(["latency,other", *latencies]) + "\n")
    title, row = whorl("workloads", "changepoints", file, "--column", "latency").out.splitlines()
    assert title.split() == ["row", "probability", "before", "(ms)", "after", "(ms)"]
    assert 9 < float(row.split()[-2]) < 11 and 49 < float(row.split()[-1]) < 51
    assert whorl("workloads", "changepoints", file, "--each").out.splitlines()[1].startswith("latency (ms)")
    found = json.loads(whorl("workloads", "changepoints", file, "--each", "--json").out)["counters"]
    assert found["latency"]["unit"] == "ms" and "unit" not in found["other"]


def test_times_and_seasons_are_said_and_columns_can_be_named(whorl: Whorl, tmp_path: Path) -> None:
    noise = np.random.default_rng(4).normal(size=120)
    swings = 10 + 4 * np.sin(np.arange(120) * np.pi / 6) + 6 * (np.arange(120) >= 60) + noise
    months = [f"{2010 + at // 12}-{at % 12 + 1:02d}" for at in range(120)]
    rows = [f"{month},x,{value},1" for month, value in zip(months, swings, strict=True)]
    file = tmp_path / "sold.csv"
    file.write_text("\n".join(["month_of,kind,sold,price", *rows]) + "\n")
    assert "'x' is no finite number" in whorl("workloads", "changepoints", file).err
    assert whorl("workloads", "changepoints", file, "--column", "sold", "--column", "price").out.split()[5] == "60"
    ended = whorl("workloads", "changepoints", file, "--column", "sold")
    assert ended.err == "a period of 12 samples\n"
    assert ended.out.splitlines()[1].split()[:2] == ["60", "2015-01"]
    file.write_text("\n".join(["month_of,kind,sold,price", *reversed(rows)]))
    assert "the times fall" in whorl("workloads", "changepoints", file, "--column", "sold").err
    assert "no column 'cost'" in whorl("workloads", "changepoints", file, "--column", "cost").err


def test_a_broken_file_is_one_line_with_its_place(whorl: Whorl, tmp_path: Path) -> None:
    file = tmp_path / "broken.csv"
    file.write_text("a,b\n1,2\n3\n")
    ended, told = whorl("workloads", "changepoints", file, "--json"), "line 3: 1 fields; the header has 2"
    assert ended.code == 3
    assert told in json.loads(ended.out)["error"]["message"] and told in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.usefixtures("prefect_server")
def test_an_ingest_shows_files_and_how_many_runs_have_a_label(
    whorl: Whorl, drawn_telemetry: Callable[..., Path]
) -> None:
    file = drawn_telemetry("shown", n_runs=2)
    ended = whorl.done("workloads", "ingest", file, "--source", "mine")
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["shown.parquet", "wide", "240", "240", "0"] in lines
    assert ended.out.endswith("8 runs in source mine, 8 with a label\n")
    assert "next: whorl workloads train --source mine" in ended.err
    told = json.loads(whorl("workloads", "ingest", file, "--source", "mine", "--json").out)
    assert (told["n_runs"], told["n_labelled"], told["refused"]) == (8, 8, [])


@pytest.mark.usefixtures("prefect_server")
def test_labels_that_differ_by_a_number_alone_are_said_before_training_and_name_leaves_it_out(
    whorl: Whorl, tmp_path: Path
) -> None:
    for number, name in enumerate(("redis-1", "redis-2", "nginx7"), 3):
        rows = "".join(f"{at},{at % number}\n" for at in range(8))
        (tmp_path / f"{name}.csv").write_text(f"at_s,a\n{rows}")
    files = sorted(tmp_path.glob("*.csv"))
    said = whorl.done("workloads", "ingest", *files, "--label-from", "stem", "--source", "mine")
    assert "3 workloads, of which some are called alike but for a number at the end; where redis-1" in said.err
    mended = whorl.done("workloads", "ingest", *files, "--label-from", "name", "--source", "mine")
    assert mended.out.endswith("3 runs in source mine, 3 with a label\n") and "alike" not in mended.err
    told = json.loads(whorl("workloads", "ingest", *files, "--label-from", "name", "--source", "mine", "--json").out)
    assert (told["n_runs"], told["n_workloads"]) == (3, 2)


@pytest.mark.usefixtures("prefect_server")
def test_what_is_suggested_after_an_ingest_without_labels_works(
    whorl: Whorl, identifying_log: Warehouse, drawn_telemetry: Callable[..., Path]
) -> None:
    file = drawn_telemetry("plain", workloads="a", n_runs=1, seed=8, unlabelled=True, prefix="p-")
    ended = whorl("workloads", "ingest", file, "--source", "mine")
    assert ended.out.endswith("1 run in source mine, 0 with a label\n")
    suggested = ended.err.splitlines()[-1].removeprefix("next: ").replace("FILE", str(file)).split(" or ")
    assert [one.split()[1:3] for one in suggested] == [["workloads", "clusters"], ["workloads", "identify"]]
    for command in suggested:
        went_on = whorl.done(*command.split()[1:])
        assert ("next: name a run of each in a manifest" in went_on.err) == ("clusters" in command)
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
    trained = whorl.done("workloads", "train", "--leave-out", "a-00", "--seed", 3)
    facts = dict(line.split("  ", 1) for line in trained.out.splitlines() if "  " in line)
    assert facts["in use"].strip() == "this model"
    assert facts["held out"].strip() == "8 runs (round 3) at first, which the figures below are of"
    watched = json.loads(whorl("workloads", "watch", "--newest", 2, "--expect", "nothing", "--json").out)
    assert len(watched["run_ids"]) == 2
    assert {alarm["kind"] for alarm in watched["alarms"]} <= {"unexpected-workload", "unknown-workload"}
    again = whorl("workloads", "watch", "--newest", 2, "--expect", "nothing")
    assert again.err.endswith("looked at 2 runs: no new alarm\n")


def test_flags_of_a_watch_reach_the_flow(whorl: Whorl, identifying_log: Warehouse, flow_finds: Any) -> None:
    asked = flow_finds({"run_ids": ["live"], "model_id": "m", "alarms": [], "n_alarms": 0, "report": ""})
    ended = whorl("workloads", "watch", "--expect", "a", "--expect", "b", "--seconds", 10, "--subject", 77)
    assert ended.err.endswith("looked at 1 run: no new alarm\n")
    live = asked[0].watch
    assert (live.look_at, live.expected, live.seconds, live.subject) == ("live", ["a", "b"], 10, "77")
    whorl("workloads", "watch", "--newest", 4)
    assert (asked[1].watch.look_at, asked[1].watch.newest, asked[1].watch.expected) == ("newest", 4, [])


def test_sources_of_job_logs_do_not_stand_in_the_way(workloads_log: Warehouse) -> None:
    with writing(workloads_log) as connection, transaction(connection):
        connection.execute("CREATE TEMP TABLE one AS SELECT * FROM ops.files")
        connection.execute(
            "INSERT INTO ops.files SELECT * REPLACE ('jobs' AS word, 'nightly' AS source, 'other' AS batch_id) FROM one"
        )
    assert source_with_rows(workloads_log, None, "workloads") == "log"


Draw = Callable[..., Path]


def test_a_run_is_named_with_confidence_neighbours_and_reasons(whorl: Whorl, identifying_log: Warehouse) -> None:
    ended = whorl.done("workloads", "identify", "a-00", "--json")
    assert ended.err == ""
    found = json.loads(ended.out)
    [run] = found["runs"]
    assert (found["source"], run["run_id"], run["label"]) == ("log", "a-00", "a")
    assert run["workload"] in ("a", None)
    assert run["is_known"] == (run["workload"] is not None)
    assert 0 <= run["confidence"] <= 1
    assert run["nearest"][0]["workload"] == "a"
    assert run["reasons"]
    assert (run["statement"], run["view"], run["present"][0]["workload"]) == ("known", "own", "a")
    assert run["present"][0]["probability"] == run["confidence"]
    ended = whorl("workloads", "identify", "a-00")
    assert ended.err == f"in training the model called {share(found['held_out_accuracy'])} of 8 held-out runs right\n"
    lines = ended.out.splitlines()
    facts = {line.split("  ")[0]: line for line in lines if line and not line.startswith("-")}
    assert {"run", "workload", "by the counters of", "nearest", "label", "model"} <= set(facts)
    assert " % sure)" in facts["workload"] and "a at distance " in facts["nearest"]
    assert any(line.startswith("- ") for line in lines)


def test_a_file_is_identified_run_by_run_and_nothing_is_kept(
    whorl: Whorl, identifying_log: Warehouse, drawn_telemetry: Draw
) -> None:
    file = drawn_telemetry("other", workloads="ab", n_runs=1, seed=8, unlabelled=True, prefix="o-")
    ended = whorl.done("workloads", "identify", file)
    lines = [line.split() for line in ended.out.splitlines()]
    assert [line[0] for line in lines] == ["run", "o-a-00", "o-b-00"]
    found = json.loads(whorl("workloads", "identify", file, "--json").out)
    assert [run["nearest"][0]["workload"] for run in found["runs"]] == ["a", "b"]
    assert len(fetch_runs(identifying_log, "log")) == 24
    assert json.loads(whorl("query", "SELECT count(*) AS n FROM workloads.identifications", "--json").out)["rows"] == [
        {"n": 0}
    ]


def test_what_runs_now_is_recorded_and_identified(
    whorl: Whorl, identifying_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    [run] = fetch_runs(identifying_log, "log", ["b-01"])

    def record(subject: str, seconds: float, params: Any) -> Any:
        asked.append((subject, seconds))
        return replace(run, run_id="live-now", workload=None)

    monkeypatch.setattr("tasks.workloads.record.bench.record_live", record)
    ended = whorl("workloads", "identify", "--live", "--seconds", 12, "--subject", "system.slice/x.service", "--json")
    assert asked == [("system.slice/x.service", 12.0)]
    assert ended.err == "recording system.slice/x.service for 12 s\n"
    [found] = json.loads(ended.out)["runs"]
    assert (found["run_id"], found["nearest"][0]["workload"]) == ("live-now", "b")


def test_a_process_in_a_shared_group_is_told_why_the_machine_answers_and_each_missing_counter_once(
    whorl: Whorl, identifying_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    [run] = fetch_runs(identifying_log, "log", ["b-01"])
    machine = [at for at, counter in enumerate(run.counters) if counter.scope == "machine"]
    lost, *kept = machine
    name = run.counters[lost].name
    shared = replace(
        run, workload=None, counters=tuple(run.counters[at] for at in kept), values=run.values[:, kept],
        missing=("own.*: process 1 shares its control group with others", f"{name}: no tracepoint some:event"),
    )  # fmt: skip
    monkeypatch.setattr("tasks.workloads.record.bench.record_live", lambda *_: shared)
    facts = dict(
        re.split(r" {2,}", line, maxsplit=1)
        for line in whorl.done("workloads", "identify", "--live", "--subject", 1).out.split("\n\n")[0].splitlines()
    )
    assert facts["by the counters of"] == "the machine: process 1 shares its control group with others"
    assert facts["counters it lacks"] == f"{name} (no tracepoint)"
    [found] = json.loads(whorl("workloads", "identify", "--live", "--subject", 1, "--json").out)["runs"]
    assert found["view_reason"] == "process 1 shares its control group with others"
    assert found["reasons_missing"] == {name: "no tracepoint some:event"}


def test_each_group_is_a_row_with_its_share(
    whorl: Whorl, identifying_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = fetch_runs(identifying_log, "log", ["a-01", "b-01"])
    groups = [
        replace(
            run,
            run_id=f"{run.workload}.service",
            workload=None,
            conditions=Conditions("now", "live", own_share=own, foreign_share=0.6 - own, stolen_share=0.05),
            processes={"serve it": 0.9, "log": 0.095, "sh": 0.005},
        )
        for run, own in zip(runs, (0.1, 0.4), strict=True)
    ]
    monkeypatch.setattr("tasks.workloads.record.bench.record_each", lambda seconds, params: groups)
    told = whorl("workloads", "identify", "--live", "--each")
    assert "outside of these groups 10.0 % of the machine was taken, by the hypervisor 5.0 %" in told.err
    lines = told.out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["b.service", "a.service"]
    assert [line.partition("serve")[2] for line in lines[1:]] == [" it 90.0 %, log 9.5 %"] * 2
    found = json.loads(whorl("workloads", "identify", "--live", "--each", "--json").out)["runs"]
    assert {run["run_id"]: run["own_share"] for run in found} == {"a.service": 0.1, "b.service": 0.4}
    assert whorl("workloads", "identify", "--live", "--each", "--subject", "7").code == 2


def test_clusters_of_a_source_and_of_files_need_no_label(
    whorl: Whorl, workloads_log: Warehouse, drawn_telemetry: Draw
) -> None:
    found = json.loads(whorl("workloads", "clusters", "--json").out)
    assert sum(len(one["run_ids"]) for one in found["clusters"]) == 24
    ended = whorl.done(
        "workloads", "clusters", drawn_telemetry("alike", workloads="ab", n_runs=3, unlabelled=True, prefix="u-")
    )
    assert ended.out.splitlines()[0].split()[:2] == ["kind", "runs"]
    assert "compared 6 runs on" in ended.err


def test_who_has_windows_of_a_trace_is_not_told_to_name_them_in_a_manifest(whorl: Whorl, tmp_path: Path) -> None:
    rows = [f"{at},{1000 if at < 150 else 5},{at % 7}" for at in range(300)]
    (tmp_path / "trace.csv").write_text("\n".join(["at_s,reads_per_s,tasks", *rows]))
    told = whorl.done("workloads", "clusters", tmp_path / "trace.csv").err
    assert "give each stretch of a trace a run_id and a workload in columns" in told
    assert "in a manifest" not in told


def test_public_workloads_that_may_stand_for_it_are_listed_with_their_distance(
    whorl: Whorl, identifying_log: Warehouse
) -> None:
    flags = ["--public", "b", "--public", "c"]
    [run] = json.loads(whorl("workloads", "identify", "a-00", *flags, "--json").out)["runs"]
    assert sorted(one["workload"] for one in run["proxies"]) == ["b", "c"]
    assert run["proxies"][0]["distance"] <= run["proxies"][1]["distance"]
    assert "public workloads" in whorl("workloads", "identify", "a-00", *flags).out
    wrong = whorl("workloads", "identify", "a-00", "--public", "q")
    assert (wrong.code, "workload q: not in the model; it knows a, b, c, d" in wrong.err) == (4, True)


def test_a_run_may_be_named_by_its_beginning(whorl: Whorl, identifying_log: Warehouse) -> None:
    several = whorl("workloads", "identify", "a-")
    assert several.code == 4
    assert "run 'a-': 6 runs begin so: a-00, a-01, a-02, a-03, a-04 and 1 more" in several.err
    none = whorl("workloads", "identify", "nowhere")
    assert (none.code, none.err) == (4, "whorl: nowhere: no file, and no run of source 'log' begins so\n")


def test_a_file_without_the_counters_of_the_model_says_which_are_missing(
    whorl: Whorl, identifying_log: Warehouse, tmp_path: Path
) -> None:
    file = tmp_path / "other.csv"
    file.write_text("at_s,x,y\n" + "".join(f"{at},{at % 3},1\n" for at in range(30)))
    ended = whorl("workloads", "identify", file)
    assert (ended.code, ended.out) == (3, "")
    assert "lacks 6 of 6 counters: cpu.tasks_01" in ended.err


def test_without_a_model_it_says_how_to_make_one(whorl: Whorl, workloads_log: Warehouse) -> None:
    ended = whorl("workloads", "identify", "--live")
    assert ended.code == 4
    assert "no model of workloads yet; make one with 'whorl workloads train'" in ended.err


@pytest.mark.parametrize("words", [["ingest"], ["identify"], ["identify", "a-00", "--live"]])
def test_files_or_either_a_run_or_what_runs_now_is_asked_for(whorl: Whorl, words: list[str]) -> None:
    assert whorl("workloads", *words).code == 2
