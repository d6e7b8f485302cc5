"""Memory of reading and ingesting a job log: one million rows and ten million, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.bench

SIZES = [int(n) for n in os.environ.get("BENCH_SIZES", "1000000,10000000").split(",")]
ROW_GROUP = 100_000
SLACK = 1.5  # of memory_mb: DuckDB's limit does not cover all of DuckDB, nor pandas
LIMIT_MB = 1024
FIRST_US = 1_735_689_600_000_000  # 2025-01-01
EVERY_US = 2_000_000
LAND_AND_INGEST = f"""
import json, sys, time
from pathlib import Path
from tasks.jobs import steps
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse
jobs, warehouse = Settings().jobs, Warehouse(home=Path(sys.argv[2]), memory_mb={LIMIT_MB})
def peak_mb():
    # not ru_maxrss, which a new program inherits from the one that started it
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
at_start, began = peak_mb(), time.monotonic()
batch = steps.land_log(warehouse, sys.argv[1], "bench", "", jobs.read, jobs.group)
landed, landed_at = peak_mb(), time.monotonic()
steps.ingest_batch(warehouse, batch)
print(json.dumps({{"start_mb": at_start, "landed_mb": landed, "ingested_mb": peak_mb(),
                  "land_s": landed_at - began, "ingest_s": time.monotonic() - landed_at}}))
"""


def write_log(path: Path, n_rows: int) -> None:
    """A log in whorl's own format, written row group by row group."""
    with pq.ParquetWriter(path, _rows(0, 1).schema, compression="zstd") as writer:
        for first in range(0, n_rows, ROW_GROUP):
            writer.write_table(_rows(first, min(ROW_GROUP, n_rows - first)))


def _rows(first: int, n_rows: int) -> pa.Table:
    ids = range(first, first + n_rows)
    times = pa.array([FIRST_US + EVERY_US * i for i in ids], pa.int64()).cast(pa.timestamp("us"))
    return pa.table({
        "run_id": [f"run-{i}" for i in ids], "name": [f"etl_{i % 9000}_daily" for i in ids],
        "user_name": [f"user {i % 57}" for i in ids], "submitted_at": times, "started_at": times,
        "runtime_s": [float(i % 977) for i in ids], "status": ["completed"] * n_rows,
        "requested_cpus": [float(i % 32 + 1) for i in ids],
    })  # fmt: skip


def test_memory_does_not_grow_with_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for n_rows in SIZES:
        log = tmp_path / f"{n_rows}.parquet"
        write_log(log, n_rows)
        command = [sys.executable, "-c", LAND_AND_INGEST, str(log), str(tmp_path / f"home{n_rows}")]
        found[n_rows] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        with capsys.disabled():
            print(f"\n{n_rows:,} rows: " + ", ".join(f"{name} {value:,.1f}" for name, value in found[n_rows].items()))
    small, large = found[SIZES[0]], found[SIZES[-1]]
    assert large["landed_mb"] < SLACK * small["landed_mb"]
    assert large["ingested_mb"] < SLACK * LIMIT_MB
