"""From a recorded run to its identification: in one process after its imports, and from the command line in all.

The model is one of the shipped recording without its last round, the run one of that round. The first call compiles
the kernels of the distances, whose result is kept on disk; so the second is what counts."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasks.warehouse.place import Warehouse
from tasks.workloads import steps
from tasks.workloads.intake import fetch_runs
from tasks.workloads.params import IdentifyParams, ReadParams, TrainParams
from tasks.workloads.training import train_source

pytestmark = pytest.mark.bench

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "data" / "recorded" / "workloads"
SOURCE = "recorded"
MOST_AFTER_IMPORT_S, MOST_COMMAND_S = 1.0, 5.0
AFTER_IMPORT = """
import sys, time
from pathlib import Path
from tasks.boosters import lightgbm_alone
from tasks.warehouse.place import Warehouse
from tasks.workloads.identify.identification import identify
from tasks.workloads.identify.model import load_model
from tasks.workloads.intake import fetch_runs
home, folder, run_id = sys.argv[1:]
lightgbm_alone()
began_s = time.perf_counter()
[run] = fetch_runs(Warehouse(home=Path(home)), "recorded", [run_id])
found = identify(run, load_model(Path(folder)))
print(time.perf_counter() - began_s, found.workload)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, str, str]:
    """A home with the recording and a model of it, the model's id, and a run of the round that was held out."""
    warehouse = Warehouse(home=tmp_path_factory.mktemp("home"))
    for path in sorted(RECORDED.glob("runs-*.parquet")):
        steps.ingest_batch(warehouse, steps.land_telemetry(warehouse, str(path), SOURCE, "", ReadParams()))
    model = train_source(warehouse, SOURCE, IdentifyParams(), TrainParams(), run_id="bench")
    last = max(fetch_runs(warehouse, SOURCE), key=lambda run: (run.round or "", run.run_id))
    return warehouse, model["model_id"], last.run_id


def ask(arguments: list[str]) -> tuple[str, float]:
    """What a command prints, and its seconds by the clock: the second call of two."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for _ in range(2):
        began_s = time.perf_counter()
        done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout, time.perf_counter() - began_s


def test_a_run_is_identified_within_a_second_after_the_imports(trained: tuple[Warehouse, str, str]) -> None:
    warehouse, model_id, run_id = trained
    folder = warehouse.models / "workloads" / model_id
    told, _ = ask([sys.executable, "-c", AFTER_IMPORT, str(warehouse.home), str(folder), run_id])
    seconds, workload = told.split()
    print(f"\n{run_id}: {workload} {float(seconds):.2f} s after the imports")
    assert float(seconds) < MOST_AFTER_IMPORT_S


def test_the_command_names_a_run_within_five_seconds(trained: tuple[Warehouse, str, str]) -> None:
    warehouse, _, run_id = trained
    command = [sys.executable, "-m", "flows.cli", "--home", str(warehouse.home), "workloads", "identify", run_id]
    told, seconds = ask([*command, "--source", SOURCE])
    print(f"\n{seconds:.2f} s in all\n{told}")
    assert seconds < MOST_COMMAND_S
