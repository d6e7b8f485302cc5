"""What a suspected node is asked for, and which deployments are its own; the Prefect server is played here."""

from types import SimpleNamespace
from typing import Any

import pytest

from flows import nodes
from flows.nodes import (
    ask_for_benchmarks,
    enough_for,
)
from tasks.nodes.detect.params import AlarmParams
from tasks.warehouse.place import Warehouse

PAGE = 2  # deployments that the server tells of at once


def deployment(name: str, source: str = "log") -> SimpleNamespace:
    parameters = {"record": {"node": name, "benchmarks": [], "runs": 100}, "source": source, "landing": "memory://"}
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
    wanted = {"node": "node-1", "benchmarks": ["cpu-sysbench"], "runs": 0, "executions": 3}
    assert parameters["record"] == wanted


def test_each_benchmark_of_the_aspect_runs_at_least_once(nodes_log: Warehouse, served: Any) -> None:
    server = served(deployment("node-1"))
    ask_for_benchmarks(nodes_log, "log", [["node-1", "disk", "2026-01-05 10:00:00"]])
    [(_, parameters)] = server.runs.values()
    assert parameters["record"]["benchmarks"] == ["disk-fio", "disk-ioping"]
    assert parameters["record"]["executions"] == 2


def test_a_deployment_is_found_behind_many_others(nodes_log: Warehouse, served: Any) -> None:
    """The server tells of a page of deployments at once; the node's own stands on the third."""
    server = served(*(deployment(f"other-{at}") for at in range(4)), deployment("node-2"))
    started, without = ask_for_benchmarks(nodes_log, "log", [["node-2", "cpu", "now"], ["node-3", "cpu", "now"]])
    assert started == ["nodes-record/node-2 (cpu)"] and without == ["node-3"]
    assert len(server.runs) == 1


def test_a_deployment_that_records_into_another_source_is_not_the_nodes_own(nodes_log: Warehouse, served: Any) -> None:
    server = served(deployment("node-1", source="elsewhere"))
    assert ask_for_benchmarks(nodes_log, "log", [["node-1", "cpu", "now"]]) == ([], ["node-1"])
    assert server.runs == {}


def test_the_same_newest_execution_asks_once_and_a_newer_one_again(nodes_log: Warehouse, served: Any) -> None:
    server = served(deployment("node-1"))
    for newest in ("10:00", "10:00", "10:05"):
        ask_for_benchmarks(nodes_log, "log", [["node-1", "cpu", newest]])
    assert len(server.runs) == 2


def test_nobody_suspected_asks_no_server(nodes_log: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "get_client", lambda **_: pytest.fail("asked a server"))
    assert ask_for_benchmarks(nodes_log, "log", []) == ([], [])
