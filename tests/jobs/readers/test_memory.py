"""Reading takes the same memory for a log of any length."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow
FEW, MANY = 300_000, 1_200_000
SLACK_MIB = 64  # reading all of MANY at once would take several hundred more
PEAK = r"""
import re, sys
from pathlib import Path
from tasks.jobs.grouping import group_keys
from tasks.jobs.params import ReadParams
from tasks.jobs.readers import READERS
n_rows = sum(len(group_keys(chunk.rows)) for chunk in READERS[sys.argv[1]].read(sys.argv[2], ReadParams()))
status = Path("/proc/self/status").read_text()  # ru_maxrss would count what the parent had before the start
print(n_rows, int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) // 1024)
"""


def write_swf(path: Path, n_rows: int) -> None:
    with path.open("w") as file:
        file.write("; UnixStartTime: 1000000000\n")
        for row in range(n_rows):
            file.write(f"{row} {row} 5 {row % 977} 16 -1 -1 16 600 -1 1 {row % 50} 1 {row % 300} 1 -1 -1 -1\n")


def write_csv(path: Path, n_rows: int) -> None:
    with path.open("w") as file:
        file.write("run_id,name,started_at,runtime_s,status\n")
        for row in range(n_rows):
            file.write(f"{row},load_{row % 977},{1_000_000_000 + row},{row % 311},completed\n")


def write_parquet(path: Path, n_rows: int) -> None:
    rows = range(n_rows)
    columns = {"run_id": [str(row) for row in rows], "name": [f"load_{row}" for row in rows]}
    numbers = {"started_at": [1_000_000_000 + row for row in rows], "runtime_s": [float(row % 311) for row in rows]}
    pq.write_table(pa.table({**columns, **numbers}), path)  # in one row group


@pytest.mark.parametrize(
    ("reader", "write"),
    [("swf", write_swf), ("table", write_csv), ("table", write_parquet)],
    ids=["SWF", "CSV", "Parquet"],
)
def test_four_times_the_rows_take_the_same_memory(tmp_path: Path, reader: str, write) -> None:
    peaks = []
    for n_rows in (FEW, MANY):
        write(tmp_path / "log", n_rows)
        command = [sys.executable, "-c", PEAK, reader, str(tmp_path / "log")]
        n_read, peak_mib = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert int(n_read) == n_rows
        peaks.append(int(peak_mib))
    assert peaks[1] < peaks[0] + SLACK_MIB, peaks
