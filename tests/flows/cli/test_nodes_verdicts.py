"""`whorl nodes train`, `tune`, `fingerprint`, `watch`, `evaluate`, and what they refuse."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasks.nodes.params import FitParams, ModelParams, NetworkParams
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import new_card, promote, register
from tasks.warehouse.sources import insert_rows
from tests.flows.cli.conftest import Whorl

pytestmark = pytest.mark.usefixtures("flows_as_they_are")
QUICK = {"WHORL_NODES__SCORE__RESAMPLES": "100", "WHORL_NODES__SEARCH__RUNNER": "here"}
TRAINED = {
    "model_id": "fingerprint-v-1",
    "champion_id": "fingerprint-v-1",
    "data_version": "v",
    "metric": "error_ratio",
    "figures": {"error_ratio": 0.1, "mse_own": 0.008, "type_accuracy": 0.875, "score_deviation": 0.05},
    "n_learned": 1216,
    "n_tested": 72,
    "is_from_before": False,
    "report": "/pages/nodes-log.html",
}
DETECTED = {
    "model_id": "detector-v-1", "data_version": "v", "figures": {"auprc": 0.97, "recall": 0.9}, "n_learned": 1216,
    "n_stressed": 240, "threshold": 0.1, "alarms_per_day": 0.9, "executions_per_day": 2880.0,
    "is_from_before": False, "report": "/pages/nodes-log.html",
}  # fmt: skip
WATCHED = {"model_id": "m", "n_nodes": 3, "alarms": [], "suspected": [], "excluded": ["node-2"], "asked": []}
NOW = pd.Timestamp("2026-01-06 12:00")
STATES = pd.DataFrame(
    {
        "node": ["node-1", "node-2"], "aspect": ["disk", "disk"], "state": ["healthy", "confirmed"],
        "since": [pd.NaT, NOW], "since_execution": ["", "e"], "n_executions": [40, 1200], "n_recent_flagged": [0, 4],
        "n_left_out": [0, 1], "is_excluded": [False, True], "asks_for_benchmark": [False, False],
        "cost_share": [float("nan"), 0.05], "last_at": [NOW, NOW], "watched_at": [NOW, NOW],
    }
)  # fmt: skip
IN_USE = ModelParams(fit=FitParams(epochs=7, weight_decay=0.01))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few resamples, and a search without Ray."""
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def model_in_use(nodes_log: Warehouse) -> Warehouse:
    """The source `log` with the cards of a detector and a network in use, which has parameters of its own; no files."""
    for kind, parameters in (("detector", {}), ("fingerprint", {"model": IN_USE.model_dump(mode="json")})):
        told = {"word": "nodes", "source": "log", "run_id": "run", "data_version": "v", "seed": 0, "figures": {}}
        card = new_card(**told, kind=kind, parameters=parameters, identity=kind)
        promote(nodes_log, "nodes", register(nodes_log, card, lambda folder: None), "the first")
    return nodes_log


def facts_of(out: str) -> dict[str, str]:
    """Names and values, as they stand below each other."""
    parted = [re.split(r" {2,}", line, maxsplit=1) for line in out.splitlines()]
    return {name: value[0] for name, *value in parted if value}


def test_flags_of_a_training_reach_the_flow(whorl: Whorl, flow_finds: Any, nodes_log: Warehouse) -> None:
    asked = flow_finds(TRAINED)
    for flags in ([], ["--variant", "paper", "--epochs", 3, "--seed", 5], ["--fresh"]):
        whorl.done("nodes", "train", *flags)
    assert [(one.as_in_use, one.trains_again) for one in asked] == [(True, False), (False, False), (False, True)]
    changed = asked[1].model
    assert (changed.variant, changed.fit.epochs, changed.fit.seed) == ("paper", 3, 5)
    assert [one.variant for one in asked] == ["detector", "paper", "detector"]
    assert [one.source for one in asked] == ["log"] * 3
    assert asked[0].model == asked[2].model == ModelParams()


def test_a_flag_changes_the_parameters_of_the_model_in_use_and_leaves_the_others(
    whorl: Whorl, flow_finds: Any, model_in_use: Warehouse
) -> None:
    """A search must not be lost to a training with another seed."""
    asked = flow_finds(TRAINED)
    seeded = ["--variant", "ours", "--seed", 5]
    for flags in (seeded, [*seeded, "--fresh"], ["--variant", "paper"], ["--variant", "ours"]):
        whorl.done("nodes", "train", *flags)
    fits = [one.model.fit for one in asked]
    assert fits[0] == FitParams(epochs=7, weight_decay=0.01, seed=5)
    assert fits[1] == FitParams(seed=5)
    assert (asked[2].model.variant, fits[2]) == ("paper", FitParams())
    assert asked[3].model == IN_USE
    assert not any(one.as_in_use for one in asked)


def test_flags_of_the_network_are_refused_without_it(whorl: Whorl, nodes_log: Warehouse) -> None:
    ended = whorl("nodes", "train", "--seed", 5)
    assert ended.code == 2
    assert "--epochs and --seed are of the network; name --variant ours or paper" in " ".join(ended.err.split())


def test_a_detector_tells_what_it_found_and_what_its_threshold_costs(
    whorl: Whorl, flow_finds: Any, nodes_log: Warehouse
) -> None:
    flow_finds(DETECTED)
    ended = whorl("nodes", "train")
    facts = facts_of(ended.out)
    assert facts["learned"] == "1,216 executions, 240 of them known to be stressed"
    assert (facts["verdicts by"], facts["recall"]) == ("models that know stress", "0.9")
    assert facts["false alarms"] == (
        "To be expected over this fleet: about 0.9 false alarms a day, at 2,880 executions a day. A guess: 30 alarms "
        "tell a rate, and these executions are too few to raise so many."
    )
    flow_finds({**DETECTED, "n_stressed": 0, "figures": {}})
    facts = facts_of(whorl("nodes", "train").out)
    assert facts["verdicts by"] == "headline metrics alone, as no stress is known" and "recall" not in facts


def test_flags_of_a_search_reach_the_flow_and_what_it_found_is_told(
    whorl: Whorl, flow_finds: Any, nodes_log: Warehouse
) -> None:
    network = NetworkParams(heads=5, dropout=0.2, edge_dropout=0.0)
    best = ModelParams(network=network, fit=FitParams(batch_size=64, learning_rate=0.02))
    found = {
        "best": best.model_dump(mode="json"), "validation_loss": 1.5, "n_trials": 9, "n_resumed": 2,
        "trials": "/searches/t.parquet",
    }  # fmt: skip
    asked = flow_finds({**found, "trained": TRAINED, "report": TRAINED["report"]})
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        ended = whorl.done("nodes", "tune", "--trials", 9, "--ray-address", address)
    [params] = asked
    assert (params.search.n_trials, params.search.ray_address) == (9, address)
    facts = facts_of(ended.out)
    assert facts["searched"] == "9 trials, 2 of them from before"
    assert facts["best"].startswith("dropout 0.2, weight decay ")
    assert "learning rate 0.02" in facts["best"] and "batch size 64" in facts["best"]
    assert (facts["model"], facts["trials"]) == ("fingerprint-v-1", "/searches/t.parquet")
    assert ended.err.endswith("next: whorl nodes fingerprint --source log\n")


def test_a_training_tells_what_is_in_use_and_what_it_rests_on(
    whorl: Whorl, flow_finds: Any, nodes_log: Warehouse
) -> None:
    flow_finds(TRAINED)
    ended = whorl("nodes", "train")
    facts = facts_of(ended.out)
    assert (facts["model"], facts["in use"]) == ("fingerprint-v-1", "this model")
    assert facts["learned"] == "1,216 executions"
    assert facts["held out"] == "72 executions, the latest, which the figures below are of"
    assert (facts["error of own metrics, of the type's mean"], facts["squared error, own metrics"]) == ("0.1", "0.008")
    assert facts["their ratio varies by"] == "0.05"
    assert "0.875" not in ended.out  # how well types are told says nothing where they are among the inputs
    assert ended.out.endswith("report: /pages/nodes-log.html\n")
    assert "nothing was learned" not in ended.err
    other = {**TRAINED, "champion_id": "fingerprint-u-2", "is_from_before": True}
    flow_finds(other)
    again = whorl("nodes", "train")
    facts = facts_of(again.out)
    assert facts["in use"] == "fingerprint-u-2: this one was not found to be better"
    assert facts["learned"] == "1,216 executions, before"
    assert "nothing was learned: the same data, parameters and code made this model; --fresh trains again" in again.err


def test_a_watch_asks_for_benchmarks_unless_told_not_to(whorl: Whorl, flow_finds: Any, model_in_use: Warehouse) -> None:
    found = {**WATCHED, "cannot_ask": ["node-1"], "report": "/pages/nodes-log.html"}
    asked = flow_finds(found)
    with writing(model_in_use) as connection, transaction(connection):
        insert_rows(connection, "nodes.states", STATES, {"source": "log", "model_id": "m"})
    ended = whorl.done("nodes", "watch")
    rows = [re.split(r" {2,}", line.strip()) for line in ended.out.partition("\n\n")[2].splitlines()[1:3]]
    assert rows == [
        ["node-2", "disk", "confirmed", "2026-01-06 12:00", "1,200", "4", "1", "5.0 %"],
        ["node-1", "disk", "healthy", "–", "40", "0", "0", "–"],
    ]
    assert "no new alarm\nto be left out: node-2\nreport: /pages/nodes-log.html\n" in ended.out
    assert "no deployment nodes-record/<node> for node-1: run 'whorl nodes record' there" in ended.err
    assert json.loads(whorl("nodes", "watch", "--no-ask", "--json").out)["excluded"] == ["node-2"]
    assert [one.asks_for_benchmarks for one in asked] == [True, False]
    ranked = whorl.done("nodes", "rank")
    assert ranked.out.splitlines()[2] == "degrading: node-2 in disk (confirmed), since 2026-01-06 12:00 UTC"
    assert ranked.err.endswith("which executions are flagged: whorl nodes explain NODE --source log\n")


@pytest.mark.usefixtures("prefect_server", "quick")
def test_a_source_is_learned_judged_watched_and_explained_from_the_command_line(
    whorl: Whorl, detecting_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = whorl.done("nodes", "train")
    facts = facts_of(trained.out)
    assert {"average precision", "F1, degraded", "false alarms", "data version"} <= set(facts)
    assert trained.err.endswith("next: whorl nodes fingerprint --source log\n")
    again = json.loads(whorl("nodes", "train", "--json").out)
    assert (again["model_id"], again["is_from_before"], again["source"]) == (facts["detector"], True, "log")

    judged = whorl.done("nodes", "fingerprint")
    assert re.match(r"[\d,]+ of 360 executions flagged\n", judged.out)
    assert "without a trained network there are no fingerprints" in judged.err
    told = json.loads(whorl("nodes", "fingerprint", "--json").out)
    assert (told["network_id"], told["scores"]) == ("", [])

    watched = whorl.done("nodes", "watch", "--no-ask")
    assert "to be left out: " in watched.out and "NaT" not in watched.out
    monkeypatch.setattr("flows.cli.nodes_verdicts.MOST_STATES", 0)
    states = json.loads(whorl("nodes", "watch", "--no-ask", "--json").out)["states"]
    n_healthy = sum(row["state"] == "healthy" for row in states)
    assert f"\nand {n_healthy} more, all healthy; --json has them all\n" in whorl("nodes", "watch", "--no-ask").out
    assert {row["node"] for row in states} == {"node-1", "node-2", "node-3"}
    assert {row["aspect"] for row in states} == {"cpu", "disk", "memory", "network"}

    explained = whorl("nodes", "explain", "node-1")
    assert re.match(r"node node-1: \d+ of 120 executions flagged \(", explained.out)
    assert re.search(r"^  \S+ [\d.,]+ \S.*, usually .*: worse \(", explained.out, flags=re.M)
    [execution] = json.loads(whorl("nodes", "explain", "00000-00-00000", "--json").out)["executions"]
    assert execution["execution_id"] == "00000-00-00000"
    unknown = whorl("nodes", "explain", "nobody")
    assert unknown.code != 0 and "no node and no execution 'nobody'" in unknown.err


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server", "quick")
def test_a_network_makes_fingerprints_from_the_command_line(whorl: Whorl, nodes_log: Warehouse) -> None:
    whorl.done("nodes", "train")
    trained = whorl.done("nodes", "train", "--variant", "ours", "--epochs", 1)
    facts = facts_of(trained.out)
    assert facts["in use"] == "this model"
    assert {"scores follow performance", "data version"} <= set(facts)
    ranked = whorl.done("nodes", "fingerprint")
    lines = ranked.out.splitlines()
    assert lines[1] == "360 of 360 executions have a fingerprint"
    assert lines[3].split() == ["aspect", "place", "node", "score", "interval", "tied", "executions"]
    assert next(line.split()[1] for line in lines if line.startswith("disk ")) == "1"
    told = json.loads(whorl("nodes", "fingerprint", "--json").out)
    assert {row["node"] for row in told["scores"]} == {"node-1", "node-2", "node-3"}
    fresh = json.loads(whorl("nodes", "train", "--variant", "ours", "--epochs", 1, "--fresh", "--json").out)
    assert not fresh["is_from_before"] and fresh["model_id"] != facts["model"]


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server", "quick")
def test_a_search_is_made_once_and_its_best_is_trained_once(whorl: Whorl, nodes_log: Warehouse) -> None:
    first = whorl.done("nodes", "tune", "--trials", 2)
    facts = facts_of(first.out)
    assert (facts["searched"], facts["in use"]) == ("2 trials", "this model")
    assert Path(facts["trials"]).exists()
    again = json.loads(whorl("nodes", "tune", "--trials", 2, "--json").out)
    assert (again["n_resumed"], again["trained"]["is_from_before"]) == (2, True)
    assert again["trained"]["model_id"] == facts["model"]


VERBS = ["train", "tune", "fingerprint", "watch"]


def never_started(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """Prefect takes 20 s to start: what can be told before is told before."""
    module = "nodes_verdicts" if verb in VERBS else "nodes"
    monkeypatch.setattr(f"flows.cli.{module}.run_flow", lambda *_, **__: pytest.fail("started"))


@pytest.mark.parametrize(
    ("verb", "flag", "value"),
    [
        ("train", "--epochs", "0"),
        ("train", "--epochs", "many"),
        ("train", "--seed", "-1"),
        ("train", "--variant", "theirs"),
        ("train", "--seed", "2147483648"),
        ("tune", "--trials", "0"),
    ],
)
def test_a_wrong_flag_is_told_in_one_line_below_the_usage(whorl: Whorl, verb: str, flag: str, value: str) -> None:
    ended = whorl("nodes", verb, flag, value)
    assert (ended.code, ended.out) == (2, "")
    *usage, last = ended.err.splitlines()
    assert usage[0].startswith(f"Usage: whorl nodes {verb} ")
    assert last.startswith(f"Error: Invalid value for '{flag}': ")


@pytest.mark.parametrize("verb", ["fingerprint", "watch"])
def test_without_a_model_it_says_how_to_make_one_before_prefect_starts(
    whorl: Whorl, monkeypatch: pytest.MonkeyPatch, nodes_log: Warehouse, verb: str
) -> None:
    never_started(monkeypatch, verb)
    ended = whorl("nodes", verb)
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == (
        "whorl: source 'log' has no trained model of nodes yet; make one with whorl nodes train --source log\n"
    )


def test_a_ray_that_does_not_answer_is_told_before_prefect_starts(
    whorl: Whorl, monkeypatch: pytest.MonkeyPatch, nodes_log: Warehouse
) -> None:
    never_started(monkeypatch, "tune")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))  # and does not listen
        ended = whorl("nodes", "tune", "--ray-address", f"127.0.0.1:{server.getsockname()[1]}")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "nothing answers at 127.0.0.1:" in ended.err
