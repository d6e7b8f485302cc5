"""One Prefect server for all tests of flows that ask for it: it costs about 18 s, a flow run then 0.2 s."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.warehouse.place import Warehouse

ROWS = [
    "run_id,name,started_at,runtime_s",
    *(f"r{day},nightly_load,2026-01-{day:02d}T01:00:00,{60 + day}" for day in range(1, 10)),
    "r10,nightly_load,2026-01-10T01:00:00,6000",
]


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server of this test session, with JSON results in a folder of its own and no heartbeats."""
    from prefect.settings import (
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        PREFECT_LOCAL_STORAGE_PATH,
        PREFECT_RESULTS_DEFAULT_SERIALIZER,
        PREFECT_SERVER_ANALYTICS_ENABLED,
        temporary_settings,
    )
    from prefect.testing.utilities import prefect_test_harness

    results = tmp_path_factory.mktemp("results")
    changed = {
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
        PREFECT_LOCAL_STORAGE_PATH: results,
        PREFECT_RESULTS_DEFAULT_SERIALIZER: "json",
    }
    with (
        temporary_settings({PREFECT_SERVER_ANALYTICS_ENABLED: False}),  # the server inherits it
        prefect_test_harness(server_startup_timeout=120),
        temporary_settings(changed),
    ):
        yield


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
