"""Two remote nodes, each with a worker, a home folder and a queue of its own, and one landing folder for both."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.engine.deploying import POOL, deploy
from flows.engine.servers import child_environment, load_key
from tasks.settings import Settings
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("sysbench"), reason="sysbench is not installed")]
NODES = ("node-a", "node-b")
SHORT = {
    "benchmark": "cpu-sysbench", "aspect": "cpu", "command": "sysbench cpu --threads=1 --time=1 run", "limit_s": 60,
}  # fmt: skip


@contextmanager
def worker_of(node: str, home: Path, server: Any) -> Iterator[None]:
    """A worker as the runbook starts it on a node."""
    home.mkdir()
    command = ["-m", "prefect", "worker", "start", "--pool", POOL, "--work-queue", node, "--type", "process"]
    with (home / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *command, "--limit", "1"],
            env=child_environment(home, api_url=server.url, key=load_key(server.home)),
            stdout=log,
            stderr=log,
        )
    family = {psutil.Process(process.pid)}
    try:
        yield
    finally:
        family |= set(psutil.Process(process.pid).children(recursive=True))
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
        for left in [one for one in family if one.is_running()]:
            left.kill()


def test_two_nodes_record_into_one_landing_folder_and_one_warehouse_has_both(
    tmp_path: Path, serving_in: Callable[[Path], AbstractContextManager[Any]]
) -> None:
    landing = f"file://{tmp_path}/landing"
    record = {"short": [SHORT], "executions": 2, "isolation": "none", "foreign_limit_ratio": 1, "minutes": 5}
    with serving_in(tmp_path / "home") as served:
        settings = Settings.model_validate(
            {
                "whorl": {"home": str(served.home), "landing": landing},
                "nodes": {"record": record, "fleet": {"nodes": NODES, "source": "fleet"}},
            }
        )
        deploy(settings, served.url)
        with worker_of(NODES[0], tmp_path / "a", served), worker_of(NODES[1], tmp_path / "b", served):
            for node in NODES:  # one after the other: these two are the same machine, which has one recorder at a time
                deployment = served.get(f"/deployments/name/nodes-record/{node}")["id"]
                run_id = served.post(f"/deployments/{deployment}/create_flow_run", {})["id"]
                ended = served.wait(run_id, "COMPLETED", "FAILED", "CRASHED", timeout_s=400)
                assert ended["state_type"] == "COMPLETED", (node, ended["state"]["message"])
                assert ended["work_queue_name"] == node
        for home in ("a", "b"):
            assert list((tmp_path / home / "recordings" / "nodes").glob("executions-*.parquet"))
            assert not (tmp_path / home / "warehouse.duckdb").exists()
        warehouse = Warehouse(home=served.home, landing=landing)
        ingested = served.start("nodes-ingest", {"source": "fleet"})
        assert served.wait(ingested, "COMPLETED", "FAILED", "CRASHED")["state_type"] == "COMPLETED"
        found = fetch(
            warehouse,
            "SELECT node, count(*) AS n, count(DISTINCT benchmark) AS m FROM nodes.executions "
            "WHERE source = 'fleet' GROUP BY node ORDER BY node",
        )
        assert found.to_dict("records") == [{"node": node, "n": 2, "m": 1} for node in NODES]
