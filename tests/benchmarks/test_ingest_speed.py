"""One million job rows into the warehouse, beside the plain way to do it: `make bench` prints the table."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.bench

N_ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
OURS = """
import json, resource, sys, time
from pathlib import Path
from tasks.jobs import steps
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse
jobs, warehouse = Settings().jobs, Warehouse(home=Path(sys.argv[2]))
began = time.monotonic()
batch = steps.land_log(warehouse, sys.argv[1], "bench", "", jobs.read, jobs.group)
steps.ingest_batch(warehouse, batch)
usage = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as lines:
    status = lines.read()  # its ru_maxrss would be that of the program that started this one
print(json.dumps({"wall_s": time.monotonic() - began, "cpu_s": usage.ru_utime + usage.ru_stime,
                  "peak_mb": int(status.split("VmHWM:")[1].split()[0]) / 1024}))
"""
PLAIN = """
import json, resource, sys, time
import duckdb, pandas
began = time.monotonic()
path = sys.argv[1]
read = pandas.read_parquet if path.endswith(".parquet") else (
    lambda name: pandas.read_csv(name, comment=";", sep=r"\\s+", header=None))
frame = read(path)
with duckdb.connect(sys.argv[2] + ".duckdb") as connection:
    connection.execute("SET enable_progress_bar = false")  # it would stand before the figures
    connection.execute("CREATE TABLE runs AS SELECT * FROM frame")
usage = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as lines:
    status = lines.read()  # its ru_maxrss would be that of the program that started this one
print(json.dumps({"wall_s": time.monotonic() - began, "cpu_s": usage.ru_utime + usage.ru_stime,
                  "peak_mb": int(status.split("VmHWM:")[1].split()[0]) / 1024}))
"""


def measured(code: str, log: Path, place: Path) -> dict[str, float]:
    """What one fresh process took: wall and CPU seconds (imports in CPU), peak memory."""
    command = [sys.executable, "-c", code, str(log), str(place)]
    return dict(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def repeated(nasa: Path, n_rows: int) -> pd.DataFrame:
    """The NASA log again and again, each time with new ids and later by its whole length."""
    one = pd.read_csv(nasa, comment=";", sep=r"\s+", header=None)
    copies = -(-n_rows // len(one))
    ids, length_s = one[0].max() + 1, one[1].max() + 1
    parts = [one.copy() for _ in range(copies)]
    for i, part in enumerate(parts):
        part[0] += i * ids
        part[1] += i * length_s
    return pd.concat(parts).head(n_rows)


@pytest.fixture(scope="module")
def swf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = os.environ.get("WHORL_DATASETS")
    if not folder:
        pytest.skip("WHORL_DATASETS names no folder with reference data")
    path = tmp_path_factory.mktemp("bench") / "repeated.swf"
    text = repeated(Path(folder) / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz", N_ROWS).to_csv(
        sep=" ", header=False, index=False
    )
    path.write_text(f"; UnixStartTime: 0\n{text}")
    return path


@pytest.fixture(scope="module")
def parquet(swf: Path) -> Path:
    rows = pd.read_csv(swf, comment=";", sep=r"\s+", header=None)
    started = pd.to_datetime(rows[1], unit="s").astype("datetime64[us]")
    user = "user " + rows[11].astype("str")
    frame = pd.DataFrame({
        "run_id": rows[0].astype("str"), "name": "app " + rows[13].astype("str"), "user_name": user,
        "started_at": started, "runtime_s": rows[3].astype("float64"), "requested_cpus": rows[4].astype("float64"),
        "status": "completed",
    })  # fmt: skip
    path = swf.with_name("runs.parquet")
    frame.to_parquet(path, index=False, row_group_size=100_000)
    return path


@pytest.mark.parametrize("kind", ["parquet", "swf"])
def test_a_million_rows_beside_pandas_and_duckdb(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log: Path = request.getfixturevalue(kind)
    ours = measured(OURS, log, tmp_path / "home")
    again = measured(OURS, log, tmp_path / "home")
    plain = measured(PLAIN, log, tmp_path / "plain")
    with capsys.disabled():
        for name, figures in {"whorl": ours, "whorl, again": again, "pandas + DuckDB": plain}.items():
            cells = ", ".join(f"{key} {value:,.1f}" for key, value in figures.items())
            print(f"\n{N_ROWS:,} rows of {kind}: {name:16} {cells}", end="")
    assert again["wall_s"] < ours["wall_s"]
