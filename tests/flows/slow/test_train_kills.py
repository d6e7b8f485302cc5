"""SIGKILL inside train, fingerprint and preprocess: the same work again ends as if nothing had happened.

train_kills.py does the killing in processes of its own; here are the claims about what it found."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasks.jobs.params import EvaluateParams

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).with_name("train_kills.py")
ROOT = Path(__file__).parents[3]
KILLS = {  # at least twenty of each kind of work
    "jobs-train": 8,
    "workloads-train": 6,
    "nodes-train": 6,
    "nodes-train-network": 4,
    "workloads-fingerprint": 10,
    "nodes-fingerprint": 10,
    "nodes-preprocess": 20,
}


@pytest.mark.parametrize("scenario", KILLS)
def test_a_kill_inside_leaves_no_half_model_and_the_rerun_gives_the_same_rows(
    scenario: str, tmp_path: Path, quick_training: EvaluateParams
) -> None:
    command = [sys.executable, str(PROGRAM), str(tmp_path), "2026", quick_training.model_dump_json()]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, f"{scenario}={KILLS[scenario]}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)[scenario]
    assert found["faults"] == {}
    assert found["n_kills"] == KILLS[scenario]
