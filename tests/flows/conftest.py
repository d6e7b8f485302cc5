"""One Prefect server for all tests of flows that ask for it: it costs about 18 s, a flow run then 0.2 s."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.engine.servers import LOOPBACK, api_url, free_port, load_key, start_server, stop_child, wait_until_healthy
from flows.engine.shared_server import WITHOUT_SCHEDULES
from tasks.nodes.params import ScoreParams
from tasks.warehouse.place import Warehouse

ROWS = [
    "run_id,name,started_at,runtime_s",
    *(f"r{day},nightly_load,2026-01-{day:02d}T01:00:00,{60 + day}" for day in range(1, 10)),
    "r10,nightly_load,2026-01-10T01:00:00,6000",
]


@pytest.fixture(scope="session")
def few_trees() -> Iterator[None]:
    """Forests of ten trees: no claim of a flow is about forests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.nodes.detect.detector.TREES", 10)
        yield


@pytest.fixture(scope="session")
def prefect_server(few_trees: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The server of this test session, as a command starts it: with a key. JSON results, and no heartbeats."""
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        PREFECT_LOCAL_STORAGE_PATH,
        PREFECT_RESULTS_DEFAULT_SERIALIZER,
        temporary_settings,
    )

    home = tmp_path_factory.mktemp("served")
    port = free_port(LOOPBACK, 0)
    server = start_server(home, LOOPBACK, port, home / "server.log", **WITHOUT_SCHEDULES)
    url = api_url(LOOPBACK, port)
    changed = {
        PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: load_key(home), PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
        PREFECT_LOCAL_STORAGE_PATH: home / "results", PREFECT_RESULTS_DEFAULT_SERIALIZER: "json",
    }  # fmt: skip
    try:
        wait_until_healthy(server, url)
        with temporary_settings(changed):
            yield
    finally:
        stop_child(server, patience_s=5)


@pytest.fixture(scope="session")
def detecting_home(
    prefect_server: None,
    tmp_path_factory: pytest.TempPathFactory,
    nodes_home: Path,
    warehouse_in: Callable[..., Warehouse],
) -> Path:
    """The home of nodes_home after the flow has trained a detector, made once: tests copy it."""
    from flows.engine.forms import call
    from flows.nodes import NodeTrainParams, nodes_train

    warehouse = warehouse_in(tmp_path_factory.mktemp("detecting") / "home", nodes_home)
    call(nodes_train, NodeTrainParams(source="log", score=ScoreParams(resamples=100), warehouse=warehouse))
    return warehouse.home


@pytest.fixture
def detecting_log(tmp_path: Path, detecting_home: Path, warehouse_in: Callable[..., Warehouse]) -> Warehouse:
    """A warehouse of this test with the executions and the detector of detecting_home."""
    return warehouse_in(tmp_path / "home", detecting_home)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse that does not exist yet."""
    return Warehouse(home=tmp_path / "home")


@pytest.fixture
def csv_log(tmp_path: Path) -> Path:
    """Ten runs of one job; the last took a hundred times as long as usual."""
    file = tmp_path / "runs.csv"
    file.write_text("\n".join(ROWS) + "\n")
    return file


@pytest.fixture
def long_csv_log(csv_log: Path) -> Path:
    """The same with sixty nights before: enough to say how seldom a run takes as long as the last."""
    nights = [f"n{i},nightly_load,2025-{11 + i // 30:02d}-{1 + i % 30:02d}T01:00:00,{61 + i % 9}" for i in range(60)]
    csv_log.write_text("\n".join([ROWS[0], *nights, *ROWS[1:]]) + "\n")
    return csv_log
