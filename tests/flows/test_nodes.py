"""The flows of nodes, run here and now as the command line and a worker run them."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from flows import nodes
from flows.engine.deploying import read_deployments
from flows.engine.forms import call, filled_in, from_form, resolved_parameters
from flows.nodes import (
    NodeEvaluateParams,
    NodeFingerprintParams,
    NodeIngestParams,
    NodeRankParams,
    NodeRecordParams,
    NodeTrainParams,
    NodeTuneParams,
    NodeWatchParams,
    PreparedParams,
    ask_for_benchmarks,
    enough_for,
    nodes_evaluate,
    nodes_fingerprint,
    nodes_ingest,
    nodes_preprocess,
    nodes_rank,
    nodes_record,
    nodes_train,
    nodes_watch,
)
from tasks.choices import NodeReader, ReaderName, TelemetryReader
from tasks.errors import NotFound
from tasks.nodes.params import (
    AlarmParams,
    EvaluateParams,
    FitParams,
    GraphParams,
    ModelParams,
    NetworkParams,
    ScoreParams,
)
from tasks.params import Params
from tasks.settings import Settings
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards, champion
from tasks.warehouse.runs import list_runs, read_run
from tests.flows.artifacts import artifact

pytestmark = pytest.mark.usefixtures("prefect_server")
FIGURES = {
    "campaign": "c", "isolation": "cgroups", "nodes": ["n"], "n_planned": 2, "n_clean": 2, "n_new": 2, "n_failed": 0,
    "unavailable": {}, "sampler_cores": 0.002,
}  # fmt: skip
Draw = Callable[..., Path]


def test_a_recording_stays_in_its_folder_unless_a_landing_folder_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nodes, "record", lambda params, folder: {"folder": folder} | FIGURES)
    found = call(nodes_record, NodeRecordParams(folder=str(tmp_path / "nodes")))
    assert found == {"folder": str(tmp_path / "nodes")} | FIGURES | {"batches": []}


def test_the_home_of_the_worker_stands_in_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WHORL_HOME", str(tmp_path / "there"))
    monkeypatch.setattr(nodes, "record", lambda params, folder: {"folder": folder} | FIGURES)
    found = call(nodes_record, NodeRecordParams(folder="{home}/recordings/{run}"))
    assert found["folder"].startswith(f"{tmp_path}/there/recordings/")
    assert "{" not in found["folder"]


def test_what_a_recorder_has_landed_is_loaded_by_the_next_ingest(
    monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, drawn_executions: Draw
) -> None:
    part = drawn_executions(nodes=1, runs=2)
    monkeypatch.setattr(nodes, "record", lambda params, folder: {"folder": str(part.parent)} | FIGURES)
    params = NodeRecordParams(folder="anywhere", landing=warehouse.landing_folder, source="fleet")
    landed = call(nodes_record, params)["batches"]
    assert len(landed) == 1
    assert call(nodes_record, params)["batches"] == landed
    assert not warehouse.file.exists()  # recording never writes the warehouse
    asked = NodeIngestParams(source="fleet", warehouse=warehouse)
    found = call(nodes_ingest, asked)
    assert (found["batches"], found["n_landed"], found["n_executions"]) == (landed, 1, 12)
    assert call(nodes_ingest, asked)["batches"] == []
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions WHERE source = 'fleet'")["n"].to_list() == [12]


def test_an_ingest_returns_keys_and_figures_and_publishes_what_it_read(
    warehouse: Warehouse, drawn_executions: Draw
) -> None:
    path = drawn_executions(runs=2)
    found = call(nodes_ingest, NodeIngestParams(results=[str(path)], source="night", warehouse=warehouse))
    assert (found["n_executions"], found["n_quarantined"], len(found["batches"])) == (36, 0, 1)
    assert path.name in artifact("nodes-night-ingest")
    [run] = list_runs(warehouse).to_dict("records")
    kept = read_run(warehouse, run["run_id"])
    assert (kept["flow"], kept["word"], kept["figures"]["n_executions"]) == ("nodes-ingest", "nodes", 36)


QUICK = ScoreParams(resamples=100)


def test_a_preprocessing_is_registered_with_what_it_decided_of_each_metric(nodes_log: Warehouse) -> None:
    params = PreparedParams(source="log", score=QUICK, warehouse=nodes_log)
    found = call(nodes_preprocess, params)
    in_use = champion(nodes_log.models, "nodes", "log", "preprocessor")
    assert in_use is not None
    assert in_use.model_id == found["model_id"]
    assert (nodes_log.models / "nodes" / found["model_id"] / "preprocessor.json").exists()
    kept = fetch(nodes_log, "SELECT is_kept, why FROM nodes.decisions WHERE source = 'log'")
    assert (len(kept), int(kept["is_kept"].sum())) == (found["n_recorded"], found["n_kept"])
    assert kept.loc[~kept["is_kept"], "why"].ne("").all()
    page = artifact("nodes-log-metrics")
    assert f"{found['n_kept']} of {found['n_recorded']} metrics kept" in page
    assert "the paper recorded 153 metrics of six benchmarks and kept 54" in page
    again = call(nodes_preprocess, params)
    assert again["model_id"] == found["model_id"]
    assert len(cards(nodes_log.models)) == 1


def test_a_ranking_is_kept_and_shown_with_intervals_and_ties(nodes_log: Warehouse) -> None:
    found = call(nodes_rank, NodeRankParams(source="log", score=QUICK, warehouse=nodes_log))
    assert (found["n_nodes"], found["n_executions"]) == (3, 360)
    scores = fetch(nodes_log, "SELECT * FROM nodes.scores WHERE source = 'log' AND aspect = 'cpu' ORDER BY rank")
    assert scores["node"].to_list() == ["node-1", "node-2", "node-3"]  # as drawn: 1, 0.8, 0.64
    assert ((scores["low"] <= scores["score"]) & (scores["score"] <= scores["high"])).all()
    assert scores["model_id"].unique().tolist() == [cards(nodes_log.models)[0].model_id]
    page = artifact("nodes-log-ranking")
    assert "## Nodes" in page and re.search(r"\[node-1\]\(http\S+nodes\S*\)", page)
    assert "How good each node is" in artifact("nodes-log-summary")
    assert Path(found["report"]).exists()
    [run] = list_runs(nodes_log).to_dict("records")
    assert read_run(nodes_log, run["run_id"])["figures"]["best"] == found["best"]


def test_a_source_without_executions_says_how_to_get_some(nodes_log: Warehouse) -> None:
    with pytest.raises(NotFound, match="'nothing' has no executions of benchmarks; fill it with 'whorl nodes ingest"):
        call(nodes_rank, NodeRankParams(source="nothing", warehouse=nodes_log))


@pytest.fixture(scope="session")
def quick_evaluation() -> EvaluateParams:
    """The parameters of an evaluation of few splits."""
    return EvaluateParams(score=QUICK, repeats=1, max_left_nodes=1, resamples=100)


@pytest.mark.slow
def test_files_are_evaluated_without_being_kept(
    warehouse: Warehouse, drawn_executions: Callable[..., Path], quick_evaluation: EvaluateParams
) -> None:
    path = drawn_executions()
    params = NodeEvaluateParams(results=[str(path)], evaluate=quick_evaluation, warehouse=warehouse)
    found = call(nodes_evaluate, params)
    assert (found["n"], found["n_refused"]) == (360, 0)
    assert Path(found["report"]).exists()
    assert path.name in artifact("nodes-files-evaluation")
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions")["n"].to_list() == [0]


SMALL = ModelParams(
    graph=GraphParams(node_metrics=False),
    network=NetworkParams(hidden=8, intermediate=8, heads=1),
    fit=FitParams(epochs=1, batch_size=64),
)
EAGER = AlarmParams(flagged=2, last=2, min_executions=2, confirm=500)


def trained(warehouse: Warehouse, **asked: Any) -> Any:
    """A network."""
    given = {"source": "log", "variant": "ours", "model": SMALL, "score": QUICK}
    return call(nodes_train, NodeTrainParams(**{**given, **asked}, warehouse=warehouse))


def test_a_detector_is_trained_asked_and_watched_by(detecting_log: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.nodes.detect.alarms.flagged", lambda judged: judged["probability"].notna().to_numpy())
    found = call(nodes_train, NodeTrainParams(source="log", score=QUICK, warehouse=detecting_log))
    assert found["is_from_before"]  # the same data, parameters and code
    assert found["figures"]["recall"] > 0.3  # a third of the doses is one deviation
    assert "To be expected over this fleet: about" in artifact("nodes-log-model")
    told = call(nodes_fingerprint, NodeFingerprintParams(source="log", score=QUICK, warehouse=detecting_log))
    assert (told["model_id"], told["n_judged"], told["n_fingerprints"]) == (found["model_id"], 360, 0)
    assert "Flagged executions, and why" in artifact("nodes-log-fingerprints")
    watching = NodeWatchParams(source="log", alarm=EAGER, score=QUICK, warehouse=detecting_log)
    seen = call(nodes_watch, watching)
    assert seen["alarms"]
    assert seen["cannot_ask"] == sorted({node for node, _, _ in seen["suspected"]})
    assert seen["asked"] == []
    assert "suspected" in artifact("nodes-log-states")
    assert Path(seen["report"]).exists()
    assert call(nodes_watch, watching)["alarms"] == []


def test_a_network_beside_it_makes_fingerprints(detecting_log: Warehouse) -> None:
    found = trained(detecting_log)
    assert found["champion_id"] == found["model_id"]
    assert f"{found['n_tested']:,} executions, the latest, which the figures below are of" in artifact(
        "nodes-log-model"
    )
    told = call(nodes_fingerprint, NodeFingerprintParams(source="log", score=QUICK, warehouse=detecting_log))
    detector = champion(detecting_log.models, "nodes", "log", "detector")
    assert detector is not None and (told["model_id"], told["network_id"]) == (detector.model_id, found["model_id"])
    assert told["n_fingerprints"] == 360
    assert "360 have a fingerprint by model" in artifact("nodes-log-fingerprints")
    assert "By fingerprint, beside the plain ranking" in artifact("nodes-log-fingerprints")


@pytest.mark.slow
def test_the_next_training_takes_the_parameters_of_the_model_in_use(nodes_log: Warehouse) -> None:
    first = trained(nodes_log)
    other = SMALL.model_copy(update={"fit": FitParams(epochs=2, batch_size=32)})
    second = trained(nodes_log, model=other)
    assert second["is_from_before"] and second["model_id"] == first["model_id"]  # by the same parameters
    assert "executions, before" in artifact("nodes-log-model")
    third = trained(nodes_log, model=other, as_in_use=False)
    assert not third["is_from_before"]
    found = {card.model_id: card.parameters["model"]["fit"] for card in cards(nodes_log.models)}
    assert (found[first["model_id"]]["epochs"], found[third["model_id"]]["epochs"]) == (1, 2)
    fourth = trained(nodes_log, model=other, as_in_use=False, trains_again=True)
    assert not fourth["is_from_before"] and fourth["model_id"] not in found


PAGE = 2  # deployments that the server tells of at once


def deployment(name: str, source: str = "log") -> SimpleNamespace:
    parameters = {"node": name, "benchmarks": [], "runs": 100, "source": source, "landing": "memory://"}
    return SimpleNamespace(id=name, name=name, parameters=parameters)


class Server:
    """Holds deployments and notes which of them were started, with what."""

    def __init__(self, *deployments: SimpleNamespace) -> None:
        self.deployments, self.runs = list(deployments), {}

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is kept open."""

    def read_deployments(self, *, flow_filter: Any, offset: int) -> list[SimpleNamespace]:
        assert flow_filter.name.any_ == ["nodes-record"]
        return self.deployments[offset : offset + PAGE]

    def create_flow_run_from_deployment(self, of: str, *, parameters: Any, tags: Any, idempotency_key: str) -> None:
        assert "fresh-benchmark" in tags
        self.runs.setdefault(idempotency_key, (of, parameters))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function: deployments to the server that has them."""

    def made(*deployments: SimpleNamespace) -> Server:
        server = Server(*deployments)
        monkeypatch.setattr(nodes, "get_client", lambda *, sync_client: server)
        return server

    return made


def test_a_node_is_asked_for_enough_executions_to_decide_its_alarm(nodes_log: Warehouse, served: Any) -> None:
    """One execution alone would neither confirm an alarm that needs two nor clear one that needs three."""
    server = served(deployment("node-1"))
    least = enough_for(AlarmParams(confirm=2, clear=3))
    asked = ask_for_benchmarks(nodes_log, "log", [["node-1", "cpu", "2026-01-05 10:00:00"]], least)
    assert asked == (["nodes-record/node-1 (cpu)"], [])
    [(of, parameters)] = server.runs.values()
    assert of == "node-1" and parameters["landing"] == "memory://"
    asked = {name: parameters[name] for name in ("node", "benchmarks", "runs", "executions")}
    assert asked == {"node": "node-1", "benchmarks": ["cpu-sysbench"], "runs": 0, "executions": 3}


def test_a_deployment_is_found_behind_many_others(nodes_log: Warehouse, served: Any) -> None:
    """The server tells of a page of deployments at once; the node's own stands on the third."""
    others = [deployment(f"other-{at}") for at in range(3)]
    server = served(*others, deployment("node-1", source="elsewhere"), deployment("node-2"))
    asked = [[f"node-{at}", "disk", "now"] for at in (1, 2, 3)]
    started, without = ask_for_benchmarks(nodes_log, "log", asked)
    assert started == ["nodes-record/node-2 (disk)"]
    assert without == ["node-1", "node-3"]  # one that records into another source is not the node's own
    [(_, parameters)] = server.runs.values()
    assert (parameters["benchmarks"], parameters["executions"]) == (["disk-fio", "disk-ioping"], 2)


def test_the_same_newest_execution_asks_once_and_a_newer_one_again(nodes_log: Warehouse, served: Any) -> None:
    server = served(deployment("node-1"))
    for newest in ("10:00", "10:00", "10:05"):
        ask_for_benchmarks(nodes_log, "log", [["node-1", "cpu", newest]])
    assert len(server.runs) == 2


def test_nobody_suspected_asks_no_server(nodes_log: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "get_client", lambda **_: pytest.fail("asked a server"))
    assert ask_for_benchmarks(nodes_log, "log", []) == ([], [])


def plain(page: str) -> str:
    return page.replace("\\", "")


CHANGED = {
    "preprocess": {"variant": "paper"}, "score": {"resamples": 123}, "detect": {"headlines": {"spin": ["rate"]}},
    "budget": {"alarms_per_day": 0.1}, "search": {"n_trials": 7}, "alarm": {"flagged": 4},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("nodes-preprocess", PreparedParams),
        ("nodes-rank", NodeRankParams),
        ("nodes-train", NodeTrainParams),
        ("nodes-tune", NodeTuneParams),
        ("nodes-fingerprint", NodeFingerprintParams),
        ("nodes-watch", NodeWatchParams),
    ],
)
def test_settings_fill_in_what_a_deployment_of_the_flow_shows(name: str, asked: type[Params], tmp_path: Path) -> None:
    settings = Settings.model_validate({"whorl": {"home": str(tmp_path)}, "nodes": CHANGED})
    [entry] = [entry for entry in read_deployments() if entry.name == name]
    shown = resolved_parameters(settings, entry.load_flow())
    found: Any = filled_in(asked, dict(settings.nodes), source="log", warehouse=settings.warehouse)
    assert from_form(asked, {"source": "log", **shown}) == found
    assert found.source == "log"


@pytest.mark.parametrize(
    ("names", "room"), [(ReaderName, "jobs"), (NodeReader, "nodes"), (TelemetryReader, "workloads")]
)
def test_forms_name_every_reader(names: Any, room: str) -> None:
    assert set(get_args(names)) == {"auto", *import_module(f"tasks.{room}.readers").READERS}
