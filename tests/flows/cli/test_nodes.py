"""`whorl nodes`: the verbs that ask, run as a program would see them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli import nodes_verdicts
from tasks.nodes import answers, steps
from tasks.nodes.params import PreprocessParams, ReadParams, ScoreParams
from tasks.warehouse.place import Warehouse
from tests.flows.cli.conftest import Whorl

FEW: dict[str, Any] = {
    "repeats": 1,
    "max_left_nodes": 1,
    "resamples": 100,
    "score": {"resamples": 100},
    "learned": {"model": {"fit": {"epochs": 1}}, "seeds": 1, "protocols": ["chronological"]},
    "injection": {"repeats": 0},
}  # resamples, splits and passes of an evaluation


@pytest.fixture
def quick(few_trees: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few resamples, splits and trees, so that a test takes a second."""
    monkeypatch.setenv("WHORL_NODES__SCORE__RESAMPLES", "100")
    asked = nodes_verdicts.evaluation_parameters

    def few(*told: Any, **named: Any) -> dict[str, Any]:
        given = asked(*told, **named)
        return (
            FEW | given | {"learned": FEW["learned"] | given["learned"], "score": FEW["score"] | given.get("score", {})}
        )

    monkeypatch.setattr(nodes_verdicts, "evaluation_parameters", few)


def test_rank_prints_place_score_interval_and_ties_by_aspect(whorl: Whorl, nodes_log: Warehouse, quick: None) -> None:
    ended = whorl.done("nodes", "rank")
    best, suspicious, _, *lines = ended.out.splitlines()
    assert lines[0].split() == ["aspect", "place", "node", "score", "interval", "tied", "executions", "machine", "type"]
    assert [line.split()[:3] for line in lines if line.startswith("cpu ")] == [
        ["cpu", "1", "node-1"],
        ["cpu", "2", "node-2"],
        ["cpu", "3", "node-3"],
    ]
    assert best.startswith("best: ")
    assert suspicious.startswith("most suspicious: ")
    assert ended.err.endswith("which executions are flagged: whorl nodes train --source log\n")


@pytest.mark.slow
def test_an_emulated_node_is_called_so(
    whorl: Whorl, home: Path, drawn_executions: Callable[..., Path], quick: None
) -> None:
    warehouse = Warehouse(home=home)
    path = str(drawn_executions(runs=10, is_emulated=True))
    steps.ingest_batch(warehouse, steps.land_executions(warehouse, path, "log", "", ReadParams()))
    assert "node-1 (emulated)" in whorl("nodes", "rank").out
    assert "node-1 (emulated)" in whorl("nodes", "summary").out
    page = Path(whorl("nodes", "report").out.strip()).read_text()
    assert "node-1 (emulated)" in page
    assert "Emulated nodes:" in page
    out = home / "evaluation"
    whorl.done("nodes", "evaluate", path, "--model", "none", "--seed", "3", "--out", out)
    assert "node-1 (emulated)" in (out / "nodes-evaluation.html").read_text()


def test_metrics_before_a_preprocessing_say_how_to_make_one(whorl: Whorl, nodes_log: Warehouse) -> None:
    ended = whorl("nodes", "metrics")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == (
        "whorl: source 'log': its metrics have not been preprocessed yet; do so with "
        "whorl nodes preprocess --source log\n"
    )


def test_metrics_tell_unit_decision_orientation_and_the_papers_rule(whorl: Whorl, nodes_log: Warehouse) -> None:
    answers.preprocess(nodes_log, "log", PreprocessParams(), ScoreParams(), "")
    ended = whorl.done("nodes", "metrics", "--benchmark", "cpu-sysbench")
    lines = {line.split()[0]: line for line in ended.out.splitlines()[1:]}
    assert set(lines) == {"events_per_second", "latency_avg", "latency_95p", "num_threads"}
    assert "more is better" in lines["events_per_second"]
    assert "less is better" in lines["latency_avg"]
    assert "dropped: a setting or a version, not a result" in lines["num_threads"]
    assert ended.out.splitlines()[0].split()[-4:] == ["paper's", "rule", "without", "stressed"]
    row = next(row for row in json.loads(whorl("nodes", "metrics", "--json").out)["metrics"] if row["is_kept"])
    assert {"rule_with_stressed", "rule_without_stressed", "is_directed"} <= set(row)
    rows = json.loads(whorl("nodes", "metrics", "--json").out)
    assert rows["n_recorded"] == len(rows["metrics"]) > rows["n_kept"] == sum(r["is_kept"] for r in rows["metrics"])
    assert all(row["why"] for row in rows["metrics"] if not row["is_kept"])


def test_summary_counts_executions_by_node_and_by_benchmark(whorl: Whorl, nodes_log: Warehouse) -> None:
    found = json.loads(whorl("nodes", "summary", "--json").out)
    assert [(row["node"], row["n_executions"], row["n_stressed"]) for row in found["nodes"]] == [
        (f"node-{at}", 120, 24) for at in (1, 2, 3)
    ]
    assert sum(row["n_executions"] for row in found["benchmarks"]) == 360
    assert "cpu-sysbench@" in whorl("nodes", "summary").out


def test_evaluate_shows_emulated_nodes_and_what_it_left_out_and_prints_one_json_object(
    whorl: Whorl, home: Path, drawn_executions: Callable[..., Path], quick: None
) -> None:
    folder = drawn_executions(runs=6, types=2, stressed=0.0, is_emulated=True).parent
    (folder / "flagged-0001.parquet").write_bytes(drawn_executions(runs=1, types=2, nodes=4).read_bytes())
    ended = whorl.done("nodes", "evaluate", folder, "--model", "none", "--seed", "3")
    assert "left out 1 part of disturbed executions (flagged-…); name them to read them" in ended.err
    facts = {line.partition("  ")[0]: line for line in ended.out.splitlines()}
    assert "36 executions on 3 nodes (3 of them emulated)" in facts["evaluated"]
    assert "(emulated)" in facts["best node"]
    assert "stressed and unstressed executions are needed" in facts["stressed executions"]
    paper = json.loads(whorl("nodes", "evaluate", folder, "--variant", "paper", "--model", "none", "--json").out)
    ours = json.loads(whorl("nodes", "evaluate", folder, "--model", "none", "--json", "--out", home / "out").out)
    assert {"seed", "data_sha256", "version", "rank.spearman"} <= set(ours)
    assert [key for key, value in ours.items() if value is None and f"{key}.reason" not in ours] == []
    assert {path.name for path in (home / "out").iterdir()} >= {"nodes-evaluation.html", "metrics.parquet"}
    assert not (home / "warehouse.duckdb").exists()
    assert paper["metrics.kept"] != ours["metrics.kept"]
    assert ours["nodes.emulated"] == "node-1, node-2, node-3"


def test_evaluate_tells_executions_that_are_given_again(whorl: Whorl, tmp_path: Path, quick: None) -> None:
    for name in ("a", "b"):
        rows = "".join(f"{at},{name},x-cpu,2026-01-{at + 1:02},rate,{1 + at / 10},/sec\n" for at in range(12))
        (tmp_path / f"{name}.csv").write_text(f"execution_id,node,benchmark,started_at,metric,value,unit\n{rows}")
    (tmp_path / "b.csv").write_text((tmp_path / "b.csv").read_text() + "99,b,x-cpu,never,rate,1,/sec\n")
    asked = ("nodes", "evaluate", tmp_path / "a.csv", tmp_path / "b.csv", "--model", "none")
    ended = whorl.done(*asked)
    facts = {line.partition("  ")[0]: line for line in ended.out.splitlines()}
    assert "1 refused row, 0 refused values, 12 replaced executions" in facts["left out"]
    figures = json.loads(whorl(*asked, "--json").out)
    assert [figures[key] for key in ("n", "n_refused", "n_values_refused", "n_replaced")] == [12, 1, 0, 12]
    without = whorl("nodes", "evaluate")
    assert (without.code, "name results, or a --manifest of them" in without.err) == (2, True)


@pytest.mark.parametrize(("n_clean", "n_new", "is_said"), [(5, 0, True), (5, 1, False), (6, 0, False)])
def test_a_recording_that_may_repeat_nothing_more_says_what_to_raise(
    whorl: Whorl, home: Path, flow_finds: Any, monkeypatch: pytest.MonkeyPatch, n_clean: int, n_new: int, is_said: bool
) -> None:
    told = {"campaign": "c", "isolation": "none", "nodes": ["n"], "n_planned": 6, "n_clean": n_clean, "n_new": n_new}
    told |= {"n_failed": 0, "unavailable": {}, "sampler_cores": 0.0}
    monkeypatch.setattr("tasks.nodes.record.campaign.runnable", lambda params: None)  # the tools may be missing here
    flow_finds(lambda params: {"folder": params.folder} | told)
    ended = whorl.done("nodes", "record", "--runs", 1)
    assert ("repeated 2 times already; raise nodes.record.repeats" in ended.err) is is_said


def test_a_dry_run_of_a_campaign_lists_it_and_records_nothing(whorl: Whorl, home: Path) -> None:
    ended = whorl.done("nodes", "record", "--dry-run", "--runs", 5, "--place", "emulated", "--json")
    found = json.loads(ended.out)
    assert found["n_executions"] == len(found["executions"]) == 3 * 6 * 5
    assert sum(row["dose_level"] > 0 for row in found["executions"]) == 18
    assert not home.exists()


def test_a_dry_run_tells_what_cannot_be_stressed_without_control_groups(
    whorl: Whorl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHORL_NODES__RECORD__ISOLATION", "none")
    ended = whorl.done("nodes", "record", "--dry-run", "--runs", 5, "--place", "emulated")
    assert "cpu-sysbench is not stressed by cpu-" in ended.err
    assert "(no control groups here)" in ended.err
    assert "network-iperf3" not in ended.err
    assert not [line for line in ended.out.splitlines() if "cpu-sysbench  cpu-" in line]


def test_a_dry_run_refuses_a_benchmark_whose_logs_nobody_reads(whorl: Whorl, monkeypatch: pytest.MonkeyPatch) -> None:
    template = {"benchmark": "cpu-other", "aspect": "cpu", "command": "sysbench cpu run"}
    monkeypatch.setenv("WHORL_NODES__RECORD__SHORT", json.dumps([template]))
    ended = whorl("nodes", "record", "--dry-run", "--runs", 5)
    assert ended.code == 2
    assert "nodes.record.short: nobody reads the logs of cpu-other; expected benchmarks of cpu-sysbench" in ended.err


def test_report_nodes_and_nodes_report_are_the_same(whorl: Whorl, nodes_log: Warehouse) -> None:
    one, other = whorl("nodes", "report"), whorl("report", "nodes")
    assert one.out == other.out
    assert Path(one.out.strip()).name == "nodes-log.html"


@pytest.mark.usefixtures("flows_as_they_are", "prefect_server")
def test_an_ingest_says_which_units_nobody_knows(whorl: Whorl, home: Path, tmp_path: Path) -> None:
    """Their values are kept as they were written."""
    rows = ["node,benchmark,started_at,metric,value,unit"]
    for at, (metric, unit) in enumerate([("rate", "MB/s"), ("speed", "blorps"), ("height", "blorps"), ("odd", "wugs")]):
        rows.append(f"a,mine,2026-01-0{at + 1}T00:00:00Z,{metric},{at + 1},{unit}")
    (tmp_path / "results.csv").write_text("\n".join(rows))
    ended = whorl.done("nodes", "ingest", tmp_path / "results.csv", "--source", "mine")
    assert "3 values not converted, as nobody knows the unit: 'blorps', 'wugs'; each is a scale of its own" in ended.err
    told = json.loads(whorl.done("nodes", "ingest", tmp_path / "results.csv", "--source", "mine", "--json").out)
    assert told["unknown_units"] == {"blorps": 2, "wugs": 1}
    assert (told["n_without_start"], "without a start" in ended.err) == (0, False)


@pytest.mark.usefixtures("flows_as_they_are", "prefect_server")
def test_an_ingest_says_how_many_have_no_start_and_how_to_give_one(whorl: Whorl, home: Path, tmp_path: Path) -> None:
    rows = ["node,benchmark,execution_id,started_at,metric,value", "a,mine,1,,rate,1", "a,mine,2,2026-01-01,rate,2"]
    (tmp_path / "results.csv").write_text("\n".join(rows))
    ended = whorl.done("nodes", "ingest", tmp_path / "results.csv")
    assert "1 of 2 executions without a start: watch leaves them out where others of their node" in ended.err
    assert "give it as started_at in a --manifest, or in the names of the files (20260131T120000)" in ended.err
