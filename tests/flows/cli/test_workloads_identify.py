"""`whorl workloads identify`: a run, a file, or what runs now, by the model in use."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.warehouse.place import Warehouse
from tasks.workloads.stored import fetch_runs

Whorl = Callable[..., Any]
Draw = Callable[..., Path]


def test_a_run_is_named_with_confidence_neighbours_and_reasons(whorl: Whorl, identifying_log: Warehouse) -> None:
    ended = whorl("workloads", "identify", "a-00", "--json")
    assert (ended.code, ended.err) == (0, "")
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


def test_a_person_reads_facts_and_reasons(whorl: Whorl, identifying_log: Warehouse) -> None:
    ended = whorl("workloads", "identify", "a-00")
    facts = {line.split("  ")[0]: line for line in ended.out.splitlines() if line and not line.startswith("-")}
    assert {"run", "workload", "by the counters of", "nearest", "label", "model"} <= set(facts)
    assert " % sure)" in facts["workload"] and "a at distance " in facts["nearest"]
    assert any(line.startswith("- ") for line in ended.out.splitlines())


def test_a_file_is_identified_run_by_run_and_nothing_is_kept(
    whorl: Whorl, identifying_log: Warehouse, drawn_telemetry: Draw
) -> None:
    file = drawn_telemetry("other", workloads="ab", n_runs=1, seed=8, unlabelled=True, prefix="o-")
    ended = whorl("workloads", "identify", file)
    assert ended.code == 0, ended.err
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

    monkeypatch.setattr("tasks.workloads.record.live.record_live", record)
    ended = whorl("workloads", "identify", "--live", "--seconds", 12, "--subject", "system.slice/x.service", "--json")
    assert asked == [("system.slice/x.service", 12.0)]
    assert ended.err == "recording system.slice/x.service for 12 s\n"
    [found] = json.loads(ended.out)["runs"]
    assert (found["run_id"], found["nearest"][0]["workload"]) == ("live-now", "b")


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


@pytest.mark.parametrize("words", [[], ["a-00", "--live"]])
def test_either_a_run_or_what_runs_now_is_asked_for(whorl: Whorl, words: list[str]) -> None:
    assert whorl("workloads", "identify", *words).code == 2
