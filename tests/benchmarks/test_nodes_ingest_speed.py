"""A region of Azure's VM noise study (1.72 million executions) landed, ingested and read back, beside plain DuckDB."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tasks.nodes import steps
from tasks.nodes.history import load_history
from tasks.nodes.params import ReadParams
from tasks.warehouse.place import Warehouse

pytestmark = pytest.mark.bench
N_ROWS = 1_720_049
MOST_S = 15.0


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def test_a_region_of_azure_is_landed_and_ingested_in_seconds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = Path(os.environ.get("WHORL_DATASETS", "-")) / "azure-vm-noise" / "eastus.parquet"
    if not path.is_file():
        pytest.skip("needs azure-vm-noise/eastus.parquet in the folder WHORL_DATASETS")
    warehouse = Warehouse(home=tmp_path / "home")
    batch, landed_s = timed(lambda: steps.land_executions(warehouse, str(path), "azure", "", ReadParams()))
    _, ingested_s = timed(lambda: steps.ingest_batch(warehouse, batch))
    history, loaded_s = timed(lambda: load_history(warehouse, "azure"))
    with duckdb.connect(str(tmp_path / "plain.duckdb"), config={"threads": "2"}) as plain:
        _, plain_s = timed(lambda: plain.execute(f"CREATE TABLE rows AS FROM '{path}'"))
    with capsys.disabled():
        print(f"\n{N_ROWS:,} rows, load {os.getloadavg()[0]:.1f}")
        print(f"  landed    {landed_s:6.2f} s\n  ingested  {ingested_s:6.2f} s\n  read back {loaded_s:6.2f} s")
        print(f"  DuckDB's CREATE TABLE AS over the same file: {plain_s:.2f} s")
    assert len(history.executions) < len(history.metrics) == N_ROWS  # several metrics of one execution are rows
    assert landed_s + ingested_s < MOST_S
